// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/isolation.h"

namespace wq {

// Looks at the files below PATHS, and through the cgroups that have cpusets. Never fails: what cannot be read
// is not there. Costs a file per such cgroup, so it is for when somebody asks, not for each tick.
Isolation read_isolation(const Paths& paths);

}  // namespace wq
