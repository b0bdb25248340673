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

// A workqueue of the kernel, in sysfs or not. The kernel counts per pool_workqueue: when an affinity scope is
// written or CPUs go online or offline, some or all of the counts restart at 0.
struct KernelWorkqueue {
    std::uint64_t address = 0;
    std::string name;         // as in sysfs; not unique for workqueues outside of sysfs
    std::uint64_t pools = 0;  // changes when its pools are replaced
    bool in_sysfs = false;
    bool follows_default = false;  // unbound, not ordered, scope left on the default
    bool unbound = false;
    bool mem_reclaim = false;  // has a rescuer
    bool bh = false;           // runs in soft interrupts
    bool managed = false;      // if a worker sleeps, the kernel wakes another one: per-CPU, neither bh nor
                               // WQ_CPU_INTENSIVE

    std::uint64_t started = 0;  // items
    // Items, at most as many as started. Of unbound workqueues, the kernel may miss some (process_one_work()
    // counts them without pool->lock).
    std::uint64_t completed = 0;
    std::uint64_t cpu_time_us = 0;    // in whole ticks; not counted if bh
    std::uint64_t cpu_intensive = 0;  // items that held a CPU beyond the kernel's threshold; only if managed
    std::uint64_t cm_wakeup = 0;      // workers woken because another slept or held the CPU; only if managed
    std::uint64_t repatriated = 0;    // workers brought back into their scope; unbound only
    std::uint64_t mayday = 0;         // calls for the rescuer
    std::uint64_t rescued = 0;        // items that the rescuer ran
    // Items that are queued (also those that wait for max_active) or run now, with the barriers of flushes.
    std::uint64_t in_flight = 0;
    std::uint64_t all_completed = 0;  // only health() sets it
};

// A workqueue's name as in sysfs, which writes '/' as '!'.
inline std::string sysfs_name(std::string name) {
    std::replace(name.begin(), name.end(), '/', '!');
    return name;
}

// What the kernel has counted for some workqueues, on the installed pool_workqueues.
struct KernelLook {
    std::uint64_t ns = 0;     // time, CLOCK_MONOTONIC
    std::uint64_t ticks = 0;  // jiffies, from an arbitrary start
    struct Counted {
        std::uint64_t pools = 0;  // changes when other pool_workqueues are installed; 0: there are none
        std::uint64_t started = 0;
        std::uint64_t completed = 0;
        std::uint64_t cpu_time_us = 0;
        // Of the worker pools that serve its CPUs, each counted once. A pool serves all workqueues of equal
        // attributes. 0: not known.
        unsigned worker_pools = 0, workers = 0;
    };
    std::vector<Counted> of;
};

// Reads workqueues repeatedly with BPF programs, which the first call loads, and which stay loaded as long as
// this object exists. Only this object runs them.
class WorkqueueWalk {
  public:
    static constexpr std::size_t kMostLooked = 16;

    // LOOKS: look() will be called.
    explicit WorkqueueWalk(bool looks = false);
    ~WorkqueueWalk();
    // Does nothing if the programs are loaded.
    Status load();
    // All workqueues of the running kernel. UNBOUND_ONLY: reads only items and CPU time, and only of unbound
    // workqueues that are in sysfs or follow the default scope. The other counts stay 0, because reading them
    // takes long on machines with many CPUs.
    Result<std::vector<KernelWorkqueue>> list(bool unbound_only = false);
    // All per-CPU workqueues, with the counts on CPUS only. Unbound workqueues have no counts per CPU.
    Result<std::vector<KernelWorkqueue>> list_on(const CpuSet& cpus);
    // Unbound workqueues in sysfs, and managed ones with a cpu_intensive above 0, of which only that is set.
    // Counts and `pools` are of the installed pool_workqueues, so they restart only when `pools` changes;
    // in_flight and all_completed are of all.
    Result<std::vector<KernelWorkqueue>> health();
    // Reads the workqueues at ADDRESSES, at most kMostLooked, in a fraction of the time of list(), which must
    // be called before. Address 0, at most once: the sum of all others that follow the default. Error: EAGAIN
    // if the list changed meanwhile.
    Result<KernelLook> look(const std::vector<std::uint64_t>& addresses);

  private:
    struct Loaded;
    bool looks_;
    std::unique_ptr<Loaded> loaded_;
};

// The workqueue NAME: the one in sysfs, else the only one with this name. Error: ENOENT if there is none,
// ENOTUNIQ if there are several.
Result<KernelWorkqueue> find_workqueue(const std::vector<KernelWorkqueue>& workqueues,
                                       const std::string& name);

}  // namespace wq
