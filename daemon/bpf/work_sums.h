// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "bpf/bpf_shared.h"
#include "bpf/bpf_workqueues.h"
#include "bpf/work_counters.h"

namespace wq {

// Buckets per octave, as a power of two, where a percentile to 12% is enough.
inline constexpr unsigned kTimeBits = 3;

// Histogram of durations in ns, with the buckets of wq_bucket_by() in bpf_shared.h.
class Histogram {
  public:
    // 2^BITS buckets per octave. The default is that of wq_bucket(), 128.
    explicit Histogram(unsigned bits = 7);

    void add(unsigned bucket, std::uint64_t items) { counts_.at(bucket) += items; }
    [[nodiscard]] std::uint64_t items() const;
    // The duration in ns that SHARE (0 to 1) of the items do not exceed. Its precision is the width of a
    // bucket (1% with the default BITS). 0 without items.
    [[nodiscard]] double percentile(double share) const;
    // The mean duration in ns, with the same precision. 0 without items.
    [[nodiscard]] double mean() const;

  private:
    unsigned bits_;
    std::vector<std::uint64_t> counts_;
};

// Counts of a window, without the kernel's statistics. QUEUED: number of items. TIMED: sums of the timed
// items. WAITED: how long these waited (empty without tails).
WorkCount count_of(std::uint64_t queued, const wq_sums& timed, const Histogram& waited);

// Sets what COUNT has of the times in queue_work(). Without items they stay unknown.
void set_enqueued(WorkCount& count, const wq_enqueued& times);

// Sets throughput, cpu, pools and workers of COUNT for target T (from 0), whose window was between the two
// looks.
void add_statistics(WorkCount& count, const KernelLook& before, const KernelLook& after, unsigned t);

}  // namespace wq
