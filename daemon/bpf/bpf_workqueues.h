// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"

namespace wq {

// A workqueue as the kernel has it, in sysfs or not. What it has counted, it has since it last set the pools:
// at an affinity scope's write and where CPUs come and go, some or all of it begins anew.
struct KernelWorkqueue {
    std::uint64_t address = 0;
    std::string name;         // as in sysfs; not unique among those that are not there
    std::uint64_t pools = 0;  // differs once its pools were set anew
    bool in_sysfs = false;
    bool follows_default = false;  // unbound, not ordered, scope left on the default
    bool unbound = false;
    bool mem_reclaim = false;  // has a rescuer
    bool bh = false;           // runs in soft interrupts
    bool managed = false;      // the kernel wakes another worker where one sleeps: per-CPU, neither bh nor
                               // WQ_CPU_INTENSIVE

    std::uint64_t started = 0;  // items
    // Items, at most as many as started. Unbound, the kernel may miss some (process_one_work() counts them
    // without pool->lock).
    std::uint64_t completed = 0;
    std::uint64_t cpu_time_us = 0;    // in whole ticks; not if bh
    std::uint64_t cpu_intensive = 0;  // items that held a CPU longer than the kernel's threshold; if managed
    std::uint64_t cm_wakeup = 0;      // workers woken for those that slept or held the CPU; if managed
    std::uint64_t repatriated = 0;    // workers brought back into their scope; unbound only
    std::uint64_t mayday = 0;         // calls for the rescuer
    std::uint64_t rescued = 0;        // items that the rescuer ran
};

// A workqueue's name as sysfs has it: '/' is '!' there. (Inline, since builds without BPF need it too.)
inline std::string sysfs_name(std::string name) {
    std::replace(name.begin(), name.end(), '/', '!');
    return name;
}

// What the kernel has counted of some workqueues, on the pool_workqueues that are in place.
struct KernelLook {
    std::uint64_t ns = 0;     // when, by CLOCK_MONOTONIC
    std::uint64_t ticks = 0;  // of the scheduler, since some time
    struct Counted {
        std::uint64_t pools = 0;  // differs once other pool_workqueues are in place; 0: there are none
        std::uint64_t started = 0;
        std::uint64_t completed = 0;
        std::uint64_t cpu_time_us = 0;
    };
    std::vector<Counted> of;
};

// Reads workqueues again and again by BPF programs, which are in the kernel while this lives. Nothing calls
// them but this.
class WorkqueueWalk {
  public:
    static constexpr std::size_t kMostLooked = 16;

    // LOOKS: look() will be called.
    static Result<WorkqueueWalk> load(bool looks = false);
    // All workqueues of the running kernel. UNBOUND_ONLY: what the others have counted stays 0; there is much
    // of it where there are many CPUs.
    Result<std::vector<KernelWorkqueue>> list(bool unbound_only = false);
    // All per-CPU workqueues, with what was counted on CPUS alone. Unbound ones have no counts by CPU.
    Result<std::vector<KernelWorkqueue>> list_on(const CpuSet& cpus);
    // Of the workqueues at ADDRESSES, at most kMostLooked, in a fraction of the time, after list(). An
    // address of 0 has the sum of all others that follow the default; there can be one. Error: EAGAIN, the
    // list changed meanwhile; or the walk finds no way in.
    Result<KernelLook> look(const std::vector<std::uint64_t>& addresses);

    WorkqueueWalk(WorkqueueWalk&&) noexcept;
    ~WorkqueueWalk();

  private:
    struct Loaded;
    explicit WorkqueueWalk(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

// The one of WORKQUEUES that is called NAME: the one in sysfs, or else the only one. Error: none, or several.
Result<KernelWorkqueue> find_workqueue(const std::vector<KernelWorkqueue>& workqueues,
                                       const std::string& name);

}  // namespace wq
