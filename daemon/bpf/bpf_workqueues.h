// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// Lists workqueues again and again by one BPF program, which is in the kernel while this lives.
class WorkqueueWalk {
  public:
    static Result<WorkqueueWalk> load();
    // All workqueues of the running kernel.
    Result<std::vector<KernelWorkqueue>> list();

    WorkqueueWalk(WorkqueueWalk&&) noexcept;
    ~WorkqueueWalk();

  private:
    struct Loaded;
    explicit WorkqueueWalk(std::unique_ptr<Loaded> loaded);
    std::unique_ptr<Loaded> loaded_;
};

// All workqueues of the running kernel. Loads one BPF program, reads it through, and leaves nothing.
Result<std::vector<KernelWorkqueue>> list_kernel_workqueues();

// The one of WORKQUEUES that is called NAME: the one in sysfs, or else the only one. Error: none, or several.
Result<KernelWorkqueue> find_workqueue(const std::vector<KernelWorkqueue>& workqueues,
                                       const std::string& name);

}  // namespace wq
