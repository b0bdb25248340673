// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace wq {

// Durations in ns, counted by wq_bucket() of bpf_shared.h.
class Histogram {
  public:
    Histogram();

    void add(unsigned bucket, std::uint64_t items) { counts_.at(bucket) += items; }
    [[nodiscard]] std::uint64_t items() const;
    // The value that SHARE (0 to 1) of the items do not exceed, in ns, to 1%; 0 without items.
    [[nodiscard]] double percentile(double share) const;

  private:
    std::vector<std::uint64_t> counts_;
};

}  // namespace wq
