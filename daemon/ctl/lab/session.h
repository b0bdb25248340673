// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ctl/lab/ab_comparison.h"
#include "machine/paths.h"

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
    std::function<Conditions()> conditions;
    Random random;
    std::function<void(const Comparison&)> progress;  // called before each round
    std::function<void()> counts;                     // called after each round that counts
};

inline constexpr unsigned kMostDropped = 10;  // the run fails after this many dropped rounds in a row

// Runs rounds until the comparison is over. An error ends it; COMPARISON keeps the earlier measurements.
Status run_rounds(Comparison& comparison, const Edges& edges);

// Counts the threads named kworker/u*: the workers of all unbound pools, of any workqueue, strict or not,
// busy or idle (kernel/workqueue.c, format_worker_id()). An idle worker stays for five minutes.
unsigned count_kworkers(const Paths& paths);

}  // namespace wq::ab
