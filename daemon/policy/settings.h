// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace wq {

struct TomlTable;

// A key of a table of the policy, and what it does to a T: a Policy, or of [[workqueue]] a WorkqueueRule. The
// valid keys of policy files, the output of `cat-config` and the hash come from these rows. The defaults are
// the initial values in policy/policy.h.
template <class T>
struct Row {
    std::string table;  // "daemon"
    std::string key;
    // Reads KEY of TABLE into OUT if it exists and is valid.
    std::function<void(const TomlTable& table, T& out)> read;
    // The value in the form that read() accepts; null: no value, the key is left out.
    std::function<nlohmann::ordered_json(const T& of)> value;
};

// In the order of `cat-config`. The settings of one table are adjacent.
const std::vector<Row<Policy>>& settings();
const std::vector<Row<WorkqueueRule>>& rule_keys();

// Reads the tables that both a file and a host table, TOP, may have into POLICY, which already has the values
// of earlier sources. Also rejects unknown keys, of which MORE are known.
void read_tables(const TomlTable& top, Policy& policy, std::vector<std::string_view> more);

}  // namespace wq
