// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ctl/ab/ab_comparison.h"

namespace wq::ab {

// What may not change within a round.
struct Conditions {
    std::int64_t suspended = 0;  // time_suspended()
    std::string cpus;            // cpu_state()
};

// What a comparison is run with.
struct Edges {
    std::function<Status(std::size_t arm)> switch_to;        // writes, also where nothing changes
    std::function<Result<double>(std::size_t arm)> measure;  // one run of the command, after that
    std::function<unsigned()> kworkers;                      // asked right after each run
    std::function<Conditions()> conditions;
    Random random;
    std::function<void(const Comparison&)> progress;  // before each round
};

inline constexpr unsigned kMostDropped = 10;  // rounds running, before it is given up

// Runs round after round until the comparison is over. KWORKERS[arm] gets what was counted after each run
// that counts. An error ends it where it is: what was measured before stays in COMPARISON.
Status run_rounds(Comparison& comparison, const Edges& edges, std::vector<std::vector<double>>& kworkers);

}  // namespace wq::ab
