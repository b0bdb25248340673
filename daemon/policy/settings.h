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

// A setting of the policy. Everything except rules and host tables is a row of one table. The valid keys of
// policy files, the output of `cat-config`, the hash, and the key names in messages come from it. The
// defaults are the initial values in policy/policy.h.
struct Setting {
    std::string table;  // "daemon"
    std::string key;
    // Reads KEY of TABLE into POLICY if it exists and is valid.
    std::function<void(const TomlTable& table, Policy& policy)> read;
    // The value in the form that read() accepts; null: no value, the key is left out.
    std::function<nlohmann::ordered_json(const Policy& policy)> value;
};

// In the order of `cat-config`. The settings of one table are adjacent.
const std::vector<Setting>& settings();

// Reads the tables that both a file and a host table, TOP, may have into POLICY, which already has the values
// of earlier sources: those of settings(), and rules. Also rejects unknown keys, of which MORE are known.
void read_tables(const TomlTable& top, Policy& policy, std::vector<std::string_view> more);

// A rule as JSON, in the form that read_tables() accepts.
nlohmann::ordered_json rule_json(const WorkqueueRule& rule);

// The keys of `when`.
extern const std::vector<std::string_view> kWhenKeys;
// The places where a policy may have KEY, as text: "in [daemon]", "in when of [[host]]", "at the top level".
// Empty if there is no such key.
std::vector<std::string> homes_of(std::string_view key);

}  // namespace wq
