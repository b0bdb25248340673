// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cpu_set.h"

namespace wq {

// One last-level cache's CPUs: the outermost data or unified cache, cut at the NUMA node, never smaller than
// a core; the core itself where there is no cache information. What kernel/workqueue.c calls a pod of
// `cache`.
struct Llc {
    CpuSet cpus;
    std::optional<unsigned> numa_node;  // empty where the source has no NUMA information
};

struct NumaNode {
    unsigned id = 0;
    CpuSet cpus;
};

// The CPUs of one machine at one moment. Groups hold online CPUs only, are disjoint, cover `online` (but for
// `packages`), and are in ascending order of their lowest CPU.
struct Topology {
    std::string source;  // "live", "fsroot:DIR", "xml:FILE", "synthetic:DESC"
    CpuSet online;
    CpuSet present;             // equals online where the source does not tell
    CpuSet possible;            // likewise
    CpuSet isolated;            // isolcpus=domain and the like (/sys/devices/system/cpu/isolated)
    std::vector<CpuSet> cores;  // thread siblings
    std::vector<Llc> llcs;
    std::vector<NumaNode> nodes;        // nodes with CPUs
    std::vector<CpuSet> packages;       // sockets; a CPU whose package is not told is in none
    std::vector<std::string> warnings;  // what was skipped while reading, and why: any puts the pods in doubt
};

// Tells machines apart: "24 CPUs, 12 cores, 1 LLC, 0123456789abcdef". Equal where cores, LLCs, nodes and MORE
// are.
std::string fingerprint(const Topology& topology, const std::string& more = "");

}  // namespace wq
