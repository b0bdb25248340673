// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/kworker.h"

namespace wq::ctl {

// One kworker during a look.
struct KworkerUse {
    int pid = 0;
    std::string name;
    std::uint64_t cpu_ns = 0;
    // CPU time by the kernel's name for the work. The time between two readings counts for the name in the
    // second one, which is a guess for a kworker that serves several workqueues.
    std::map<std::string, std::uint64_t> by_work;
    bool stuck = false;     // busy with one item that was in uninterruptible sleep in all readings
    std::string work;       // at the last reading
    CpuSet cpus;            // where it may run; filled in by the caller
    std::string sleeps_in;  // the kernel function, if it is stuck; filled in by the caller
};

// Adds up readings of all kworkers.
class KworkerWatch {
  public:
    void add(const std::vector<Kworker>& reading);
    // The kworkers that used CPU time or are stuck. Needs two readings.
    [[nodiscard]] std::vector<KworkerUse> uses() const;
    [[nodiscard]] std::size_t seen() const { return seen_.size(); }

  private:
    struct Seen {
        Kworker last;
        KworkerUse use;
        unsigned readings = 0;  // latest readings in a row that found it in the same sleep
    };
    std::map<int, Seen> seen_;
    unsigned readings_ = 0;
};

}  // namespace wq::ctl
