// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/bpf_workqueues.h"

namespace wq {

// What was timed of one workqueue's work since attach(). Sums only grow.
struct WorkTimes {
    std::uint64_t address = 0;          // the workqueue's
    std::uint64_t queued = 0;           // items whose wait for pool->lock was seen
    std::uint64_t lock_ns = 0;          // theirs: from entering __queue_work() to holding pool->lock
    std::vector<std::uint32_t> waited;  // items by ns from queueing (the lock's wait included, if seen) to
                                        // start, in buckets of Histogram(kTimeBits); each wraps around
};
inline constexpr unsigned kTimeBits = 3;  // eight buckets to an octave

// One function on one workqueue, since attach(): items that ended, and the time that they kept a worker.
struct FunctionTimes {
    std::uint64_t workqueue = 0;  // its address
    std::uint64_t function = 0;   // its address
    std::string name;             // "kcryptd_crypt [dm_crypt]"
    std::uint64_t items = 0;
    std::uint64_t busy_ns = 0;
};

struct WorkSample {
    double seconds = 0;                       // when, on a clock that only goes forward
    std::vector<KernelWorkqueue> workqueues;  // in the kernel's order
    std::vector<WorkTimes> times;             // of those that had work
    std::vector<FunctionTimes> functions;
    std::uint64_t lost =
        0;  // items that were not timed: no room for them, or queued again before their start
};

// Watches the work of all workqueues in the kernel.
class WorkMonitor {
  public:
    virtual ~WorkMonitor() = default;

    // Begins, with the workqueues of these NAMES (as in sysfs), or with all if there is none; FUNCTIONS too,
    // if wanted. Error: what the kernel or the build lacks, or no workqueue of a name; nothing is attached
    // then. The destructor of an implementation leaves nothing in the kernel.
    virtual Status attach(const std::vector<std::string>& names, bool functions) = 0;
    // All that was counted by now.
    virtual Result<WorkSample> sample() = 0;
    // What cannot be seen on this kernel, in words; "" if nothing.
    [[nodiscard]] virtual std::string limits() const = 0;
};

}  // namespace wq
