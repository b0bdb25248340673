// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/step.h"
#include "evidence/comparison.h"

namespace wq {

// The state of a target's comparison, for status, explain and metrics.
struct ComparisonView {
    Arms arms;  // the reference (`baseline`) and the candidate
    Course course = Course::none;
    Judgement judgement = Judgement::undecided;  // the decision, which stays until the opposite is decided
    Decision decision;                           // from the evidence as of the last pair
    Effect effect;                               // of the counter that decided, or is nearest to a decision
    std::optional<std::int64_t> next_pair;       // s since 1970, if it is known
    std::string waits;                           // why no pair is measured now; "" while one is
    double lost_seconds = 0;                     // of today's budget
    bool measuring = false;                      // takes part in the running slot
    bool by_order = false;                       // `wq-tunectl compare` asked for it
};

// Totals of all experiments since the start of the daemon.
struct ExperimentTotals {
    std::uint64_t slots = 0;
    std::uint64_t pairs = 0;
    std::uint64_t pairs_dropped = 0;
    std::uint64_t windows_lost = 0;
    std::uint64_t improved = 0;    // verdicts
    std::uint64_t regressed = 0;   //
    std::uint64_t undecided = 0;   // comparisons that max_pairs pairs did not decide
    std::uint64_t taken_back = 0;  // by the watch
    std::uint64_t rests = 0;       // candidates that were set aside for a time
    std::uint64_t cut_off = 0;     // targets that left a slot before its end
};

}  // namespace wq
