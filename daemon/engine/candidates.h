// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/step.h"
#include "evidence/ledger.h"

namespace wq {

// What is known of a target's comparisons.
struct Known {
    std::function<const LedgerEntry*(const LedgerKey&)> entry;  // Ledger::find(); empty: nothing is known
    std::function<bool(const Arms&)> rests = {};                // the candidate was set aside on this target
    std::string before_upgrade =
        {};  // the arm that an older kernel kept for this class; "" where none is known
};

// Which arms the target meets, in which order, what it holds and what is compared next. Pure: the same ledger
// makes the same step, so that it survives restarts.
//
// Candidates are the plan, and in mode tune, where no rule names a scope, every scope that is finer than the
// reference; a coarser one only where it is the plan. They meet the reference one after the other, the size
// nearest to one shard first. What improves becomes the reference. In mode guard the plan is the only one.
Step next_step(const StepInput& input, const Known& known);

// All arms that the target could meet, as long as nothing is known, in their order.
std::vector<Arm> candidates_of(const StepInput& input);

// Pairs of the counters that decide.
std::uint64_t pairs_of(const LedgerEntry& entry);

// How often the comparison of ENTRY (nullptr: no pair yet) is measured, at NOW (s since 1970).
Course course_of(const LedgerEntry* entry, const Judging& judging, std::int64_t now);

// "smt against cache: improved, latency -8.1% (-9.0..-7.2), 23 pairs".
std::string text_of(const LedgerEntry& entry);

}  // namespace wq
