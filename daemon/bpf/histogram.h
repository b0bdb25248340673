// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace wq
