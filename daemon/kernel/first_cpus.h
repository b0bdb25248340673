// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "kernel/paths.h"
#include "model/topology.h"

namespace wq {

// The CPUs that were online and not isolated when the daemon first started in this boot, in a file in /run,
// which a boot clears: the kernel makes its pods once, so a CPU that comes later is not in a known one.

// Empty if there is no such file, or it is not a list of CPUs.
CpuSet read_first_cpus(const Paths& paths);

// Writes the file from NOW unless it exists, or NOW is in doubt.
Status keep_first_cpus(const Paths& paths, const Topology& now);

}  // namespace wq
