// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/host_facts.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace wq {
namespace {

std::size_t cores_in(const CpuSet& cpus, const Topology& topology) {
    return static_cast<std::size_t>(
        std::ranges::count_if(topology.cores, [&](const CpuSet& core) { return cpus.intersects(core); }));
}

// Isolated CPUs are in no LLC, so there may be no LLC at all.
std::optional<unsigned> largest_llc(const Topology& topology) {
    if (!topology.llc_unknown.empty()) return std::nullopt;
    std::size_t most = 0;
    for (const Llc& llc : topology.llcs)
        if (llc.cpus.count() > most) most = std::max(most, cores_in(llc.cpus, topology));
    if (most == 0) return std::nullopt;
    return static_cast<unsigned>(most);
}

}  // namespace

void take_counts(const Topology& topology, HostFacts& facts) {
    if (topology.cores.empty()) return;
    facts.llc_cores = largest_llc(topology);
    facts.cores = static_cast<unsigned>(topology.cores.size());
    if (!topology.nodes.empty()) facts.numa_nodes = static_cast<unsigned>(topology.nodes.size());
    facts.smt = std::ranges::any_of(topology.cores, [](const CpuSet& core) { return core.count() > 1; });
}

double canary_position(const std::string& machine_id, const std::string& name) {
    const std::string text = machine_id + "/" + name;
    return std::ldexp(static_cast<double>(hash_of(text)), -64);
}

}  // namespace wq
