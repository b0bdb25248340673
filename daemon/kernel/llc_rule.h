// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/sched_levels.h"
#include "model/topology.h"

namespace wq {

// A data or unified cache.
struct Cache {
    unsigned level = 0;
    bool has_size = true;  // the kernel knows more of it than that the CPU claims it
    CpuSet cpus = {};      // the online CPUs that share it
};

// What the rule looks at beside cores, nodes and packages. What a function tells is asked for only where the
// answer depends on it.
struct LlcFacts {
    std::string arch = {};  // as of `uname -m`; "" where the source does not tell
    // Of each CPU: those of level 2 and 3, and the outermost one.
    std::vector<Cache> caches = {};
    std::vector<CpuSet> clusters = {};  // disjoint; a CPU of none is a cluster by itself
    // The vendor_id of the CPUs (x86), "" where it is not known.
    std::function<std::string()> vendor = [] { return ""; };
    std::function<SchedLevels()> sched_levels = [] { return SchedLevels{}; };
};

// Sets the LLCs of TOPOLOGY, which has all the rest, to what cpus_share_cache() says on a kernel of that
// architecture; and `llc_unknown`, where that cannot be told or what the firmware says contradicts itself.
// There are LLCs then, too: the outermost caches, cut at the NUMA node, never smaller than a core.
void set_llcs(Topology& topology, const LlcFacts& facts);

}  // namespace wq
