// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "base/result.h"
#include "kernel/paths.h"
#include "model/topology.h"

namespace wq {

// What sys/devices/system/{cpu,node} say, read strictly. No file is believed that is larger than kMaxFile or
// does not parse; what it would have told is missing then, and a line in `warnings` says so.
struct CpuFiles {
    CpuSet online;
    CpuSet present;
    CpuSet possible;
    CpuSet isolated;
    std::vector<CpuSet> cores;      // a partition of `online`, ascending by lowest CPU
    std::vector<NumaNode> nodes;    // disjoint; those with online CPUs. None: no NUMA information
    std::vector<CpuSet> packages;   // disjoint; a CPU whose file is absent or absurd is in none
    std::vector<CpuSet> clusters;   // likewise: groups of cores inside a package, where the kernel knows any
    std::vector<CpuSet> outermost;  // likewise: those that share their last cache
    CpuSet cache_known;             // online CPUs that have cache files, all of them sane
    std::vector<std::string> warnings;
};

// ROOT is the prefix of /sys; "" is this machine. Error: no such tree, or one that does not tell which CPUs
// are online.
Result<CpuFiles> read_cpu_files(const std::string& root);

// What tells CPUs that came or went, as the kernel says it now.
std::string cpu_state(const Paths& paths);

}  // namespace wq
