// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace wq {

// Durations in ns, counted by wq_bucket_by() of bpf_shared.h.
class Histogram {
  public:
    // 2^BITS buckets to an octave; by itself as wq_bucket() counts, 128.
    explicit Histogram(unsigned bits = 7);

    void add(unsigned bucket, std::uint64_t items) { counts_.at(bucket) += items; }
    [[nodiscard]] std::uint64_t items() const;
    // The value that SHARE (0 to 1) of the items do not exceed, in ns, as exactly as the buckets are
    // wide (to 1%, by themselves); 0 without items.
    [[nodiscard]] double percentile(double share) const;

  private:
    unsigned bits_;
    std::vector<std::uint64_t> counts_;
};

}  // namespace wq
