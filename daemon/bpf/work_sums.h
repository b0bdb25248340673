// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

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

// Sums the work seen on watched CPUs over several attachments. Holds up to kMost kinds of work; items of
// other kinds count as lost.
class WatchedSums {
  public:
    static constexpr std::size_t kMost = 1024;

    void add(const WatchedWork& work);
    void add_lost(std::uint64_t items) { lost_ += items; }
    void add_seconds(double seconds) { seconds_ += seconds; }
    [[nodiscard]] Watched sums() const;

  private:
    // The key separates per-CPU workqueues from others of the same name.
    std::map<std::tuple<std::string, bool, std::string>, std::uint64_t> items_;
    std::uint64_t lost_ = 0;
    double seconds_ = 0;
};

}  // namespace wq
