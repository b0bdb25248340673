// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/isolation.h"

namespace wq {

// Reads the files below PATHS and the cgroups that have cpusets. Never fails: what cannot be read counts as
// missing. Reads a file per cgroup, so call it on request, not on each tick.
Isolation read_isolation(const Paths& paths);

}  // namespace wq
