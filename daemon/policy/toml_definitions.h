// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/result.h"
#include "policy/toml_value.h"

namespace wq {

// One part of a key: `b` of `a.b`.
struct TomlName {
    std::string name;
    std::size_t offset = 0;
};
using TomlKey = std::vector<TomlName>;  // at least one part

// What TOML 1.0 forbids: a second definition, or an addition to what is closed.
struct TomlConflict {
    std::size_t offset = 0;         // of the name that cannot be defined or added to
    std::string name;               // as written in full, "a.b"
    const TomlValue* by = nullptr;  // what is there already
    bool addition = false;          // to `by`; else a second definition of it
};
template <class T>
using TomlDefined = tl::expected<T, TomlConflict>;

// What defines tables and values, each below the table TOP; KEY is relative to it. What is made is returned,
// for the caller to fill.

// [KEY] at OFFSET: the table.
TomlDefined<TomlValue*> define_table(TomlValue& top, const TomlKey& key, std::size_t offset);
// [[KEY]] at OFFSET: a new element.
TomlDefined<TomlValue*> define_element(TomlValue& top, const TomlKey& key, std::size_t offset);
// KEY = ...: its value, for now `false`.
TomlDefined<TomlValue*> define_value(TomlValue& top, const TomlKey& key);

}  // namespace wq
