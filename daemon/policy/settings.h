// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "model/policy.h"
#include "policy/toml_table.h"

namespace wq {

// A setting of the policy. All that is not a rule or a host table is a row of one table: what files may say,
// what `cat-config` prints, the hash, and the keys that messages name come from it. The default is the
// field's in model/policy.h.
struct Setting {
    const char* table;  // "daemon"
    const char* key;
    // Reads KEY of TABLE into POLICY, where it is there and right.
    void (*read)(TomlTable& table, const char* key, Policy& policy);
    // Its value as read() takes it.
    nlohmann::ordered_json (*value)(const Policy& policy);
};

// In the order in which `cat-config` has them; those of one table follow each other.
std::span<const Setting> settings();

// Reads all settings of the table called NAME.
void read_settings(TomlTable& table, std::string_view name, Policy& policy);

// The scope of a rule, or of [default_scope]; empty where there is none, and where it is wrong.
std::optional<ScopeWish> read_wish(TomlTable& table);

}  // namespace wq
