// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "model/kworker.h"

namespace wq::ctl {

// One kworker over a time.
struct KworkerUse {
    int pid = 0;
    std::string name;
    std::uint64_t cpu_ns = 0;
    // CPU time by what the kernel called the work at the end of each step between two readings: a guess for a
    // kworker that serves several workqueues.
    std::map<std::string, std::uint64_t> by_work;
    bool stuck = false;     // busy with one item that slept, uninterruptible, in all readings
    std::string work;       // at the last reading
    CpuSet cpus;            // where it may run; filled in by the caller
    std::string sleeps_in;  // the same, if it is stuck
};

// Adds readings of all kworkers up.
class KworkerWatch {
  public:
    void add(const std::vector<Kworker>& reading);
    // All that had CPU time or are stuck. Needs two readings.
    [[nodiscard]] std::vector<KworkerUse> uses() const;
    [[nodiscard]] std::size_t seen() const { return seen_.size(); }

  private:
    struct Seen {
        Kworker last;
        KworkerUse use;
        unsigned readings = 0;  // so far without an interruption in the same sleep
    };
    std::map<int, Seen> seen_;
    unsigned readings_ = 0;
};

}  // namespace wq::ctl
