// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/bpf_workqueues.h"

namespace wq {

// What is counted only when it is asked for, because it costs more.
struct Wanted {
    bool tails = false;    // histograms, for WorkCount::tail
    bool enqueue = false;  // the return of every __queue_work() of the machine, for WorkCount::enqueue
    friend bool operator==(const Wanted&, const Wanted&) = default;
};

// Counts of the items that were queued in one window of a target, even if they ended later. Times are in ns;
// means and tail are of the timed items, of which one that is open at the end counts with its age. If not all
// are timed, stuck, unfinished and lost are estimates. items + unfinished + lost is the number queued.
struct WorkCount {
    static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

    std::uint64_t items = 0;  // that ended
    double latency = 0;       // mean, from queueing to the end; waiting for pool->lock included, see limits()
    double tail = 0;          // p99 of queueing to start, to 1%; 0 unless Wanted::tails
    double exec = 0;          // mean, from start to end, of those that started
    double lock = 0;  // mean, from entering __queue_work() to holding pool->lock; kUnknown: see limits()
    // Mean time that a producer spent in queue_work(). kUnknown unless Wanted::enqueue, or if its return is
    // not seen.
    double enqueue = kUnknown;
    std::vector<std::uint32_t> enqueued = {};  // items by that time, in buckets of Histogram(kTimeBits)
    std::uint64_t stuck = 0;       // of all queued: on a pool_workqueue that is no longer installed
    std::uint64_t unfinished = 0;  // queued, but still open
    std::uint64_t lost = 0;        // cancelled, queued again, no room to record them, or not seen
    std::uint64_t timed = 0;       // all items, or one of N: see sample()

    // From the kernel's own statistics at the window's edges; no probe is involved. kUnknown: the window had
    // no end, the pools were replaced in it, or the kernel's workqueues could not be read.
    double throughput = kUnknown;  // items started per second
    double cpu = kUnknown;  // CPU time per started item; also unknown below kLeastTicks of the scheduler
    static constexpr unsigned kLeastTicks = 200;  // the kernel counts CPU time in whole ticks

    // Also from the window's end: worker pools and kworkers of the target; 0: not known.
    unsigned pools = 0, workers = 0;
};

// Counts the work of several targets at once, in the kernel. Each target has its own windows, one after the
// other, in the two slots of a pair.
class WorkCounters {
  public:
    static constexpr unsigned kMostTargets = 16;

    virtual ~WorkCounters() = default;

    // From now on, watches TARGETS only: names of workqueues, and kDefaultTarget for all others that follow
    // the default scope. The other functions take a target's index. Programs that are attached stay if
    // possible. Error: the kernel lacks something, or a workqueue does not exist; then nothing is attached.
    virtual Status attach(const std::vector<std::string>& targets, Wanted wanted) = 0;
    // From the next begin() on, times one of N items (1 to 65535, initially 1) of target T that are queued on
    // a CPU. Both windows of a pair need the same N: see sampled_every() in counters/counter_table.h.
    virtual void sample(unsigned t, unsigned n) = 0;
    // Items of target T queued from now on belong to its window SLOT (0 or 1), which starts empty. Settles
    // the other window if it was not read yet, so its items can end until this call: the times from pause()
    // to begin() and from pause() to read() should be about equal.
    virtual Status begin(unsigned t, unsigned slot) = 0;
    // Items of target T queued from now on belong to no window: the window ends.
    virtual void pause(unsigned t) = 0;
    // Counts of window SLOT of target T as of its first read. Ends the window if it has not ended.
    virtual Result<WorkCount> read(unsigned t, unsigned slot) = 0;
    // Detaches all programs. The destructor of an implementation does this too.
    virtual void detach() = 0;

    // The kernel's own counts of a workqueue's items since its pools were last set. They restart at 0 when a
    // scope is written or CPUs go online or offline.
    struct Traffic {
        std::uint64_t started = 0;
        std::uint64_t completed = 0;  // some are missing, see KernelWorkqueue
        std::uint64_t cpu_ns = 0;     // in whole ticks
    };
    // Of each unbound workqueue in sysfs, by name; kDefaultTarget has the sum of all that follow the default.
    // The first call loads the programs. They stay loaded, but do not run between calls.
    virtual Result<std::map<std::string, Traffic>> traffic() = 0;
    // Traffic of attached target T, in a fraction of the time. Does not include work on pools that were
    // replaced.
    virtual Result<Traffic> traffic_of(unsigned t) = 0;

    // As WorkqueueWalk::health(), with the programs of traffic().
    virtual Result<std::vector<KernelWorkqueue>> health() = 0;

    // What the counts of the last attach() lack on this kernel, in words; "" if nothing.
    [[nodiscard]] virtual std::string limits() const = 0;
};

// Counters with BPF (Linux 6.6 or later, with BTF). They need CAP_BPF and CAP_PERFMON. Nothing is loaded
// before attach() or traffic(). REFUSAL: why nothing may be counted here; attach() and traffic() return it.
std::unique_ptr<WorkCounters> make_bpf_counters(std::string refusal = "");

}  // namespace wq
