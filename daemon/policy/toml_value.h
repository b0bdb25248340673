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
struct TomlDate {
    std::string day;  // "2027-01-31"; "" for a time alone
    bool has_time = true;
};
using TomlArray = std::vector<TomlValue>;
using TomlMembers = std::map<std::string, std::unique_ptr<TomlValue>>;

// A value of a TOML text. Offsets are in bytes from the start of the text.
struct TomlValue {
    std::size_t offset = 0;      // its first byte; for a table with a header, the header
    std::size_t key_offset = 0;  // the last part of its key; 0 for an element of an array
    std::variant<bool, std::int64_t, double, std::string, TomlDate, TomlArray, TomlMembers> value{false};
};

}  // namespace wq
