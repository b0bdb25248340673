// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine/kernel_info.h"
#include "machine/topology.h"

namespace wq {

// A data or unified cache. A first level of which only registers of the CPU tell, so that it has no size,
// does not count.
struct Cache {
    unsigned level = 0;
    CpuSet cpus = {};  // online CPUs that share it
};

// Input of the rule besides cores, nodes and packages. The function is called only if the result depends on
// it.
struct LlcFacts {
    std::string arch = {};  // as in `uname -m`; "" if the source does not give it
    // For each CPU: its caches of level 2 and 3, and its outermost cache.
    std::vector<Cache> caches = {};
    std::vector<CpuSet> clusters = {};  // disjoint; a CPU in none is a cluster by itself
    std::string vendor = {};            // the vendor_id of the CPUs (x86); "" if not known
    std::function<SchedLevels()> sched_levels = [] { return SchedLevels{}; };
};

// Sets the LLCs of TOPOLOGY, whose other fields are complete, to the groups of cpus_share_cache() on a
// kernel of that architecture. Sets `llc_unknown` if the groups cannot be determined or the firmware
// contradicts itself. The LLCs are then the outermost caches, cut at the NUMA node, never smaller than a
// core.
void set_llcs(Topology& topology, const LlcFacts& facts);

}  // namespace wq
