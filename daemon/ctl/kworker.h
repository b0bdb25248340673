// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/paths.h"

namespace wq {

// A kworker at one moment.
struct Kworker {
    int pid = 0;
    std::string name;   // "kworker/u96:3", "kworker/R-kcryptd-254:0"
    std::string work;   // the kernel's name for its work, usually a workqueue: "kcryptd-254:0-1"; may be ""
    bool busy = false;  // true: it does `work` now; false: it did `work` last
    char state = '?';   // as in /proc/PID/stat: R: running, D: blocked inside an item, I: idle
    std::uint64_t cpu_ns = 0;  // CPU time since its start
    std::uint64_t runs = 0;    // how often it was scheduled on a CPU
};

// The workers of all workqueues, by pid. Never fails: a kworker that ends meanwhile is left out, and a PID
// namespace other than the initial one has none. A process that only has the name of a kworker is left out.
std::vector<Kworker> read_kworkers(const Paths& paths);

// The CPUs that the task PID is allowed on; empty if it has ended.
CpuSet cpus_of_task(const Paths& paths, int pid);

// The kernel function in which the task PID sleeps; "" if it runs, has ended, or we may not know.
std::string sleeps_in(const Paths& paths, int pid);

}  // namespace wq
