// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "evidence/comparison.h"
#include "model/policy.h"

namespace wq {

// What comparisons measure on this host. It is part of their keys.
struct Measures {
    std::vector<ComparedCounter> counters;
    std::string lacks;      // what cannot be counted
    std::string scheduler;  // sched_ext ops in force, cache-aware scheduling
};

// What comparisons measure under JUDGING. WORK_COUNTED: the work of workqueues can be counted here; if not,
// only the counters of the machine are left. LACKS and SCHEDULER: as in Measures.
Measures measures_of(const Judging& judging, bool work_counted, const std::string& lacks,
                     const std::string& scheduler);

}  // namespace wq
