// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ctl/ab/ab_comparison.h"

namespace wq::ab {

// Conditions that must not change within a round.
struct Conditions {
    std::int64_t suspended = 0;  // time_suspended()
    std::string cpus;            // cpu_state()
};

// The external functions of a comparison.
struct Edges {
    std::function<Status(std::size_t arm)> switch_to;        // writes even if nothing changes
    std::function<Result<double>(std::size_t arm)> measure;  // runs the command once after the switch
    std::function<unsigned()> kworkers;                      // called right after each run
    std::function<Conditions()> conditions;
    Random random;
    std::function<void(const Comparison&)> progress;  // called before each round
};

inline constexpr unsigned kMostDropped = 10;  // the run fails after this many dropped rounds in a row

// Runs rounds until the comparison is over. KWORKERS[arm] gets the count after each run that counts. An
// error ends it; COMPARISON keeps the earlier measurements.
Status run_rounds(Comparison& comparison, const Edges& edges, std::vector<std::vector<double>>& kworkers);

}  // namespace wq::ab
