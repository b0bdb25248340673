// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/verdicts.h"
#include "machine/host_facts.h"
#include "targets/step.h"

namespace wq::ctl {

// What evidence says about a class of targets, for `fleet policy` and `history --export-policy`.
struct LearnedRule {
    std::string kind;                // class of targets: "kcryptd-#:#-#", "@default"
    std::optional<Arm> arm;          // what to set; empty: leave the class
    std::optional<Arm> had;          // what the evidence compared with first
    std::vector<std::string> notes;  // the evidence, for people; `evidence` of the rule is the last one
    std::string why_none = {};       // why there is no rule: "is undecided"; "" if there is one
};

// The rules for the machines that meet all conditions.
struct LearnedTable {
    std::vector<std::pair<const char*, nlohmann::ordered_json>> when;  // null: not known, no condition
    std::vector<LearnedRule> rules;
};

// A policy drop-in that decides everything: mode tune, the scopes of TABLES (set first), `leave` for all
// other workqueues, and @default unmanaged where no rule moves it; where one does, a class that is left names
// the scope that it had. Of two patterns the narrower one comes first. All rules expire kRuleDays after NOW
// (s since 1970). SOURCE: the first word of the tables' names; HEADING: lines of comment.
std::string drop_in(const std::string& source, const std::string& heading,
                    const std::vector<LearnedTable>& tables, std::int64_t now);
inline constexpr int kRuleDays = 180;

struct VerdictInput {
    const std::vector<VerdictRecord>& records;  // VerdictStore::records()
    std::string kernel;                         // only verdicts of this kernel_key() count,
    std::string topology;                       // and of this fingerprint()
    std::int64_t now = 0;                       // s since 1970
};
// What the verdicts say about each class that has one of this kernel and topology, sorted by class, whatever
// the policy is and which workqueues exist now.
std::vector<LearnedRule> rules_of(const VerdictInput& input);

// These rules as one policy drop-in for machines like that of FACTS, which learned, with a kernel of this
// series, without its name and machine id; "" if there is no rule.
std::string exported_policy(const HostFacts& facts, const VerdictInput& input);

}  // namespace wq::ctl
