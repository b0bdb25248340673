// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/histogram.h"
#include "bpf/work_counters.h"

namespace wq {

// Counts of a window, without the kernel's statistics. QUEUED: number of items. TIMED: sums of the timed
// items. WAITED: how long these waited (empty without tails).
WorkCount count_of(std::uint64_t queued, const wq_sums& timed, const Histogram& waited);

// Sets what COUNT has of the times in queue_work(). Without items they stay unknown.
void set_enqueued(WorkCount& count, const wq_enqueued& times);

// Sets throughput, cpu, pools and workers of COUNT for target T (from 0), whose window was between the two
// looks.
void add_statistics(WorkCount& count, const KernelLook& before, const KernelLook& after, unsigned t);

}  // namespace wq
