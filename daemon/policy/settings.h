// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "policy/policy.h"
#include "policy/toml_table.h"

namespace wq {

// A setting of the policy. Everything except rules and host tables is a row of one table. The valid keys of
// policy files, the output of `cat-config`, the hash, and the key names in messages come from it. The
// defaults are the initial values in policy/policy.h.
struct Setting {
    const char* table;  // "daemon"
    const char* key;
    // Reads KEY of TABLE into POLICY if it exists and is valid.
    void (*read)(TomlTable& table, const char* key, Policy& policy);
    // The value in the form that read() accepts; null: no value, the key is left out.
    nlohmann::ordered_json (*value)(const Policy& policy);
};

// In the order of `cat-config`. The settings of one table are adjacent.
std::span<const Setting> settings();

// Reads all settings of the table NAME.
void read_settings(TomlTable& table, std::string_view name, Policy& policy);

// The scope, candidates and hold of a rule or of [default_scope]; empty if there are none or if one is
// invalid.
std::optional<ScopeWish> read_wish(TomlTable& table);
// The last day of a rule or of [default_scope], and why it exists; "" if there is none or it is invalid.
std::string read_expires(TomlTable& table);
std::string read_evidence(TomlTable& table);
// The candidates of WISH as an array, or null.
nlohmann::ordered_json candidates_json(const ScopeWish& wish);

// The cpumask of a rule or of [default_mask]; empty if there is none or it is invalid. Whether this host has
// the CPUs is not known here, see names_cpus() in policy/policy_tables.h.
std::optional<MaskWish> read_mask(TomlTable& table);

}  // namespace wq
