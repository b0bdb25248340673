// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// CPU time of one kworker in one function of one workqueue, since attach().
struct RanWork {
    std::uint64_t workqueue = 0;  // its address, as in KernelWorkqueue
    std::string function;         // "kcryptd_crypt [dm_crypt]"
    int pid = 0;
    std::string kworker;           // the name of its task, at most 15 characters
    std::uint64_t cpu_ns = 0;      // in whole scheduler ticks
    std::uint64_t longest_ns = 0;  // CPU time that an item was seen to use without a sleep
};

// How work was queued for an isolated CPU.
struct WorkOrigin {
    bool timer = false;  // by the timer of a delayed work
    unsigned cpu = 0;    // where it was queued
    std::string task;    // that ran on that CPU then; "" for a timer
    std::uint64_t items = 0;
};

// One function of one workqueue that started on isolated CPUs, or was queued for them.
struct IsolatedWork {
    std::uint64_t workqueue = 0;  // its address; 0: it ran in a soft interrupt
    std::string function;
    std::uint64_t items = 0;          // that started on isolated CPUs
    std::vector<WorkOrigin> origins;  // most items first; none for unbound work, which has no CPU
};

struct ProfileSample {
    std::vector<RanWork> ran;
    std::vector<IsolatedWork> isolated;
    std::uint64_t lost_ticks = 0;  // ticks and items for which there was no room
    std::uint64_t lost_items = 0;
};

// Watches which functions keep kworkers on CPUs.
class WorkProfile {
  public:
    virtual ~WorkProfile() = default;

    // Begins to sample kworkers and, if there are ISOLATED CPUs, to count the work on them. Error: the kernel
    // offers neither; then nothing is attached. An implementation's destructor removes everything from the
    // kernel.
    virtual Status attach(const CpuSet& isolated) = 0;
    // All since attach().
    virtual Result<ProfileSample> read() = 0;
    // Why kworkers are not sampled (RanWork is not known), nor timers seen; "" if all is seen.
    [[nodiscard]] virtual std::string limits() const = 0;
};

// A profile with BPF (Linux 6.6 or later, with BTF). It needs CAP_BPF and CAP_PERFMON.
std::unique_ptr<WorkProfile> make_bpf_profile();

}  // namespace wq
