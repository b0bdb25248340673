// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "policy/policy.h"
#include "policy/toml_table.h"

namespace wq {

// `counters` of the table [judge]: 1 to kMaxCounters names of counters, or tables with the direction. Empty
// if there is no such key, or after a mistake.
std::optional<std::vector<JudgedCounter>> read_counters(TomlTable& judge);
// `guards`: 0 to kMaxCounters tables, { counter = "cpu", tolerance = "5%" }. Empty in the same cases.
std::optional<std::vector<Guard>> read_guards(TomlTable& judge);

// In the form that the functions above read.
nlohmann::ordered_json counters_json(const std::vector<JudgedCounter>& counters);
nlohmann::ordered_json guards_json(const std::vector<Guard>& guards);

}  // namespace wq
