// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/histogram.h"
#include "bpf/work_counters.h"

namespace wq {

// What a window came to, without its statistics: QUEUED items, what was summed of those that were timed, and
// how long these waited (empty without tails).
WorkCount count_of(std::uint64_t queued, const wq_sums& timed, const Histogram& waited);

// Sets throughput and cpu of COUNT, of a window between two looks: of target T, counted from 0.
void add_statistics(WorkCount& count, const KernelLook& before, const KernelLook& after, unsigned t);

}  // namespace wq
