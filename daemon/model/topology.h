// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cpu_set.h"

namespace wq {

// The CPUs that share a last-level cache to the kernel (kernel/llc_rule.cpp): what kernel/workqueue.c makes a
// pod of `cache` of. Never smaller than a core.
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
    std::string llc_unknown;            // why `llcs` may not be what the kernel sees; "" where they are
    std::vector<NumaNode> nodes;        // nodes with CPUs
    std::vector<CpuSet> packages;       // sockets; a CPU whose package is not told is in none
    std::vector<std::string> warnings;  // what was skipped while reading, and why: any puts the pods in doubt
};

// Tells machines apart: "24 CPUs, 12 cores, 1 LLC, 0123456789abcdef". Equal where cores, LLCs, nodes and MORE
// are.
std::string fingerprint(const Topology& topology, const std::string& more = "");

}  // namespace wq
