// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "bpf/bpf_workqueues.h"

namespace wq {

// Times of one workqueue's work since attach(). Sums only grow.
struct WorkTimes {
    std::uint64_t queued = 0;   // items whose wait for pool->lock was measured
    std::uint64_t lock_ns = 0;  // their time from entering __queue_work() to holding pool->lock
    // Items by ns that producers spent in queue_work(), in the same buckets; none if that is not seen.
    std::vector<std::uint32_t> enqueued;
    std::vector<std::uint32_t> waited;  // items by ns from queueing to start (with the lock wait, if
                                        // measured), in buckets of Histogram(kTimeBits); each wraps around
};

// One function on one workqueue since attach(): items that ended, and how long they kept a worker busy.
struct FunctionTimes {
    std::string name;  // "kcryptd_crypt [dm_crypt]"
    std::uint64_t items = 0;
    std::uint64_t busy_ns = 0;
};

// CPU time of one kworker in one function of one workqueue, since attach().
struct RanWork {
    std::uint64_t workqueue = 0;  // its address, as in KernelWorkqueue
    std::string function;         // "kcryptd_crypt [dm_crypt]"
    int pid = 0;
    std::string kworker;           // the name of its task, at most 15 characters
    std::uint64_t cpu_ns = 0;      // in whole scheduler ticks
    std::uint64_t longest_ns = 0;  // CPU time that an item was seen to use without a sleep
};

struct WorkSample {
    double seconds = 0;                        // time of the sample, on a monotonic clock
    std::vector<KernelWorkqueue> workqueues;   // in the kernel's order
    std::map<std::uint64_t, WorkTimes> times;  // by the address of the workqueue; only of those that had work
    std::map<std::pair<std::uint64_t, std::uint64_t>, FunctionTimes> functions;  // by workqueue and function
    std::uint64_t lost = 0;  // items that were not timed: no room, or queued again before their start
    std::optional<std::vector<RanWork>> ran;  // empty: kworkers are not sampled
    std::uint64_t lost_ticks = 0;             // samples for which there was no room
};

// Watches the work of all workqueues in the kernel.
class WorkMonitor {
  public:
    virtual ~WorkMonitor() = default;

    // Starts to watch, with FUNCTIONS also functions, with KWORKERS also which kworker runs which one. Error:
    // something is missing in the kernel; then nothing is attached. An implementation's destructor removes
    // everything from the kernel.
    virtual Status attach(bool functions, bool kworkers) = 0;
    // All counts so far. With nothing attached, only what the kernel itself counts per workqueue.
    virtual Result<WorkSample> sample() = 0;
    // As WorkqueueWalk::list_on().
    virtual Result<std::vector<KernelWorkqueue>> list_on(const CpuSet& cpus) = 0;
    // What cannot be measured on this kernel, as text that follows "not seen: "; "" if nothing.
    [[nodiscard]] virtual std::string limits() const = 0;
};

// A monitor with BPF (Linux 6.6 or later, with BTF). It needs CAP_BPF and CAP_PERFMON, and holds at most 512
// workqueues that have work, 1024 functions and 4096 pairs of kworker and function.
std::unique_ptr<WorkMonitor> make_bpf_monitor();

}  // namespace wq
