// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// What was counted of a target's work in one window: of the items that were queued in it, wherever they
// ended. Times are in ns, means and tail of the timed items. A timed item that is open at the end counts with
// its age. Where not all items are timed, stuck, unfinished and lost are estimated from those that are; the
// sum of items, unfinished and lost is always the number of items queued.
struct WorkCount {
    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

    std::uint64_t items = 0;  // that ended
    double latency = 0;       // mean, from queueing to the end; waiting for pool->lock included, see limits()
    double tail = 0;          // p99 of queueing to start, to 1%; 0 unless attached with tails
    double exec = 0;          // mean, from start to end, of those that started
    double lock = 0;          // mean, from entering __queue_work() to holding pool->lock
    std::uint64_t stuck = 0;  // of all queued: on a pool_workqueue that is no longer the workqueue's own
    std::uint64_t unfinished = 0;  // queued, and open
    std::uint64_t lost = 0;        // cancelled, queued again, no room to remember them, or passed unseen
    std::uint64_t timed = 0;       // all items, or every N-th: see sample()

    // From the kernel's own statistics at the window's edges; no probe is involved. kUnknown: the window had
    // no end, the pools were replaced in it, or the kernel's workqueues could not be read.
    double throughput = kUnknown;  // items completed per second
    double cpu = kUnknown;  // CPU time per completed item; also unknown below kLeastTicks of the scheduler
    static constexpr unsigned kLeastTicks = 200;  // the kernel counts CPU time in whole ticks
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

// A per-CPU workqueue, or one of soft interrupts.
struct StartedWork {
    std::uint64_t address = 0;
    std::string workqueue;    // its name; not unique
    std::uint64_t items = 0;  // that started, since the workqueue was made
};

// Counts the work of several targets at once, in the kernel. Each target has windows of its own, one after
// the other, in the two slots of a pair.
class WorkCounters {
  public:
    static constexpr unsigned kMostTargets = 16;

    virtual ~WorkCounters() = default;

    // Watches the work of TARGETS, and of no others from now on: names of workqueues, and kDefaultTarget for
    // all that follow the default scope and are not named. A target is known by its index. TAILS: histograms
    // are kept, for WorkCount::tail. Programs that are attached already stay if they can. Error: what the
    // kernel or the build lacks, or no such workqueue; nothing is attached then.
    virtual Status attach(const std::vector<std::string>& targets, bool tails) = 0;
    // From the next begin() on, every N-th item (1 to 65535; 1 until then) of target T that is queued on a
    // CPU is timed. Both windows of a pair need the same N: see counters/sampling.h.
    virtual void sample(unsigned t, unsigned n) = 0;
    // Items of target T queued from now on belong to its window SLOT (0 or 1), which starts empty. Its other
    // window, if it was not read yet, is read first. So items of the first window have from pause() to this
    // to end, and those of the second from pause() to read(): these times should be alike.
    virtual Status begin(unsigned t, unsigned slot) = 0;
    // Items of target T queued from now on belong to no window: the window ends.
    virtual void pause(unsigned t) = 0;
    // What window SLOT of target T came to, when it was first read. Ends the window if it has not ended.
    virtual Result<WorkCount> read(unsigned t, unsigned slot) = 0;
    // No program is called any more. Also done by the destructor of an implementation.
    virtual void detach() = 0;

    // From the next attach() to its detach(), work of all workqueues that starts on one of CPUS is counted as
    // well, by workqueue and function. No CPU, which is how it begins: nothing of it is attached.
    virtual void watch(const CpuSet& cpus) = 0;
    // What came of that, in all times attached.
    [[nodiscard]] virtual Watched watched() = 0;

    // What the kernel itself has counted on CPUS, of each workqueue that has pools of single CPUs: whoever
    // queued it, and without a probe. Unbound work is not in it, as the kernel does not count where it runs.
    // Walks all workqueues; the programs for it are those of traffic().
    virtual Result<std::vector<StartedWork>> started_on(const CpuSet& cpus) = 0;

    // What the kernel itself has counted of a workqueue's items since its pools were last set. A scope write
    // and CPUs that come and go begin it anew.
    struct Traffic {
        std::uint64_t started = 0;
        std::uint64_t completed = 0;
        std::uint64_t cpu_ns = 0;  // in whole ticks
    };
    // Of each unbound workqueue in sysfs, by name; kDefaultTarget has the sum of all that follow the default.
    // The programs for it are loaded by the first call and stay until this is destroyed, but nothing calls
    // them in between.
    virtual Result<std::map<std::string, Traffic>> traffic() = 0;
    // Of attached target T, in a fraction of the time. Work on pools that were replaced is not in it.
    virtual Result<Traffic> traffic_of(unsigned t) = 0;

    // What the counts of the last attach() lack on this kernel, in words; "" if nothing.
    [[nodiscard]] virtual std::string limits() const = 0;
};

}  // namespace wq
