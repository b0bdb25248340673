// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace wq {

// POLICY, loaded from FILES, as one policy file without host tables, which gives the same policy on any
// host. Comments show the file and line of each value, and for each host table the conditions that are not
// true.
std::string policy_toml(const Policy& policy, const std::vector<std::string>& files);

// The same as JSON: {"files", "hosts", "hash", "policy": {"daemon": {...}, ..., "workqueue": [...]},
// "origins": {"daemon.mode": "FILE:LINE" or "built-in", ..., "workqueue": [...]}}.
nlohmann::ordered_json policy_json(const Policy& policy, const std::vector<std::string>& files);

// Identifies a policy independent of its files: XXH64 (seed 0), as 16 hex digits, of the output of
// `wq-tunectl cat-config --json | jq -cj .policy`.
std::string policy_hash(const Policy& policy);
// The same hash of the concatenated text of FILES. It is equal on all hosts with the same files, even if
// different host tables match. "" if a file cannot be read.
std::string sources_hash(const std::vector<std::string>& files);

// [{"name", "origin": "FILE:LINE", "matches", "why": ["arch is ..."]}], in the order of merging; "why" is
// empty if the table matches.
nlohmann::ordered_json hosts_json(const Policy& policy);
// One line for each host table: "epyc (FILE:LINE): does not match: arch is ...".
std::vector<std::string> host_lines(const Policy& policy);

// VALUE (a string, number, boolean or object of those; UTF-8) in TOML syntax, on one line.
std::string toml_text(const nlohmann::ordered_json& value);
// TEXT as a TOML comment, short enough for a line of a policy and without terminal control characters.
std::string toml_comment(const std::string& text);
// The glob that matches TEXT alone, for a condition; null if TEXT is empty or has control characters.
nlohmann::ordered_json glob_or_null(const std::string& text);

}  // namespace wq
