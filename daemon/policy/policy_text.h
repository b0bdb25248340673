// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/policy.h"

namespace wq {

// POLICY, which came of FILES, as one policy file without host tables, which reads as the same policy on any
// host. Each value has a comment with the file and line that it came from, and each host table one, with the
// conditions that do not hold.
std::string policy_toml(const Policy& policy, const std::vector<std::string>& files);

// The same for machines: {"files", "hosts", "hash", "policy": {"daemon": {...}, ..., "workqueue": [...]},
// "origins": {"daemon.mode": "FILE:LINE" or "built-in", ..., "workqueue": [...]}}.
nlohmann::ordered_json policy_json(const Policy& policy, const std::vector<std::string>& files);

// Tells policies apart, whatever files they come of: XXH64 (seed 0), as 16 hex digits, of what
// `wq-tunectl cat-config --json | jq -cj .policy` prints.
std::string policy_hash(const Policy& policy);
// The same of the text of FILES, one after the other: equal on all hosts that were given the same files,
// whichever of their host tables match. "" where one cannot be read.
std::string sources_hash(const std::vector<std::string>& files);

// [{"name", "origin": "FILE:LINE", "matches", "why": ["arch is ..."]}], in the order of merging; "why" is
// empty where the table matches.
nlohmann::ordered_json hosts_json(const Policy& policy);
// A line for each: "epyc (FILE:LINE): does not match: arch is ...".
std::vector<std::string> host_lines(const Policy& policy);

// VALUE (a string, number, boolean or object of those; UTF-8) as TOML has it, in one line.
std::string toml_text(const nlohmann::ordered_json& value);
// TEXT as a comment that fits into a line of a policy, with nothing that a terminal would obey.
std::string toml_comment(const std::string& text);

}  // namespace wq
