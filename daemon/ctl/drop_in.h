// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "targets/step.h"

namespace wq::ctl {

// What evidence says about a class of targets.
struct LearnedRule {
    std::string kind;                // class of targets: "kcryptd-#:#-#", "@default"
    std::optional<Arm> arm;          // what to set; empty: leave the class
    std::optional<Arm> had;          // what the evidence compared with first
    std::vector<std::string> notes;  // the evidence, for people; `evidence` of the rule is the last one
};

// The rules for the machines that meet all conditions.
struct LearnedTable {
    std::vector<std::pair<const char*, nlohmann::ordered_json>> when;  // null: not known, no condition
    std::vector<LearnedRule> rules;
};

// A policy drop-in that decides everything: mode tune, the scopes of TABLES (set first), `leave` for all
// other workqueues, and @default unmanaged where no rule moves it. If a rule moves @default, a class that is
// left names the scope that it had. Of two patterns the narrower one comes first. All rules expire kRuleDays
// after NOW (s since 1970). SOURCE is the first word of the tables' names; HEADING has lines of comment.
std::string drop_in(const std::string& source, const std::string& heading,
                    const std::vector<LearnedTable>& tables, std::int64_t now);
inline constexpr int kRuleDays = 180;

}  // namespace wq::ctl
