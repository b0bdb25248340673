// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/kworker.h"
#include "machine/paths.h"

namespace wq {

// The workers of all workqueues, by pid. Never fails: a kworker that ends meanwhile is left out, and a PID
// namespace other than the initial one has none. A process that only has the name of a kworker is left out.
std::vector<Kworker> read_kworkers(const Paths& paths);

// The CPUs that the task PID is allowed on; empty if it has ended.
CpuSet cpus_of_task(const Paths& paths, int pid);

// The kernel function in which the task PID sleeps; "" if it runs, has ended, or we may not know.
std::string sleeps_in(const Paths& paths, int pid);

}  // namespace wq
