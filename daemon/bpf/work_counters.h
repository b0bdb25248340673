// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// What was counted of a target's work in one window: of the items that were queued in it, wherever they
// ended. Times are in ns.
struct WorkCount {
    std::uint64_t items = 0;  // of them, those that had ended when the window was read
    double latency = 0;       // mean, from queueing to the end; waiting for pool->lock included, see limits()
    double tail = 0;          // p99 of queueing to start, to 1%
    double exec = 0;          // mean, from start to end
    double lock = 0;          // mean of all queued, from entering __queue_work() to holding pool->lock
    std::uint64_t stuck = 0;  // of all queued: on a pool_workqueue that is no longer the workqueue's own
    std::uint64_t unfinished = 0;  // seen queued, not seen to end when the window was read
    std::uint64_t lost = 0;        // no room to remember them, or cancelled or unseen, and queued again
};

// Work of one workqueue and one function that started on watched CPUs, whoever queued it.
struct WatchedWork {
    std::string workqueue;  // as in sysfs; "" for work in soft interrupts, which does not tell
    bool per_cpu = false;
    std::string function;  // "vmstat_update", "kcryptd_crypt [dm_crypt]"
    std::uint64_t items = 0;
};

// All of it since the counters were made.
struct Watched {
    std::vector<WatchedWork> work;  // most items first
    std::uint64_t lost = 0;         // items for which there was no room
    double seconds = 0;             // that CPUs were watched
};

// Counts the work of one target at a time, in the kernel.
class WorkCounters {
  public:
    virtual ~WorkCounters() = default;

    // Watches the work of TARGET: a workqueue's name, or kDefaultTarget for all that follow the default
    // scope. Error: what the kernel or the build lacks; nothing is attached then.
    virtual Status attach(const std::string& target) = 0;
    // Items queued from now on belong to window SLOT (0 or 1), which starts empty.
    virtual Status begin(unsigned slot) = 0;
    // Items queued from now on belong to no window.
    virtual void pause() = 0;
    // What window SLOT has come to by now. Items queued in it may end after it, and count.
    virtual Result<WorkCount> read(unsigned slot) = 0;
    // Leaves nothing in the kernel. Also done by the destructor of an implementation.
    virtual void detach() = 0;

    // From the next attach() to its detach(), work of all workqueues that starts on one of CPUS is counted as
    // well, by workqueue and function. No CPU, which is how it begins: nothing of it is attached.
    virtual void watch(const CpuSet& cpus) = 0;
    // What came of that, in all times attached.
    [[nodiscard]] virtual Watched watched() = 0;

    // Items that each workqueue in sysfs, by name, has started since its pools were last set (the kernel's
    // PWQ_STAT_STARTED); kDefaultTarget has the sum of all that follow the default. Leaves nothing attached.
    virtual Result<std::map<std::string, std::uint64_t>> traffic() = 0;

    // What the counts of the last attach() lack on this kernel, in words; "" if nothing.
    [[nodiscard]] virtual std::string limits() const = 0;
};

}  // namespace wq
