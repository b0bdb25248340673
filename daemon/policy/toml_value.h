// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace wq {

struct TomlValue;
struct TomlDate {};  // a date, a time or both: checked, and not kept, since no setting is one
using TomlArray = std::vector<TomlValue>;
using TomlMembers = std::map<std::string, std::unique_ptr<TomlValue>>;

// A value of a TOML text. Offsets are in bytes, from the text's beginning.
struct TomlValue {
    std::size_t offset = 0;      // of its first byte; of a table with a header, the header's
    std::size_t key_offset = 0;  // of the last part of its key; of an element of an array, 0
    std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlArray, TomlMembers> value{false};
};

}  // namespace wq
