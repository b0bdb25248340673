// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evidence/ledger.h"
#include "targets/step.h"

namespace wq {

// Why a comparison rests on a target: "" if it does not. SUSPECT: because the candidate looked harmful.
struct ArmRest {
    std::string why;
    bool suspect = false;
};

// What is known about a target's comparisons.
struct Known {
    std::function<const LedgerEntry*(const LedgerKey&)> entry;  // Ledger::find(); empty: nothing is known
    std::function<ArmRest(const Arms&)> rest = {};              // on this target; empty: none rests
    std::string before_upgrade =
        {};              // the arm that was kept for this class under an older kernel; "" if none is known
    bool spent = false;  // the target's judge.budget for today is used up
};

// Which arms the target is compared with and in which order, what it holds, and what is compared next. Pure:
// the same ledger gives the same step, also after a restart.
//
// If the rule says `auto`, the candidates are the plan and every scope that is finer than the reference, or
// those that the rule lists; of the others a coarser scope only if it is the plan. They are compared with the
// reference one after the other, the pool size nearest to one shard first. An arm that improved becomes the
// reference. If the rule says `plan` or names a scope, this arm is set first, and is the only candidate.
Step next_step(const StepInput& input, const Known& known);

// All arms that the target would be compared with if the ledger were empty, in order.
std::vector<Arm> candidates_of(const StepInput& input);

// How often the comparison of ENTRY (nullptr: no pair yet) is measured, at NOW (s since 1970).
Course course_of(const LedgerEntry* entry, const Judging& judging, std::int64_t now);

// "smt against cache: improved, latency 8.1% better (7.2 to 9), 23 pairs".
std::string text_of(const LedgerEntry& entry);

}  // namespace wq
