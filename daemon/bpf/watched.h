// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "bpf/work_counters.h"

namespace wq {

// Adds up what was seen on watched CPUs, attachment after attachment. Holds as many kinds of work as kMost;
// the items of further ones are lost.
class WatchedSums {
  public:
    static constexpr std::size_t kMost = 1024;

    void add(const WatchedWork& work);
    void add_lost(std::uint64_t items) { lost_ += items; }
    void add_seconds(double seconds) { seconds_ += seconds; }
    [[nodiscard]] Watched sums() const;

  private:
    // Of workqueues that share a name, per-CPU ones and others are told apart.
    std::map<std::tuple<std::string, bool, std::string>, std::uint64_t> items_;
    std::uint64_t lost_ = 0;
    double seconds_ = 0;
};

}  // namespace wq
