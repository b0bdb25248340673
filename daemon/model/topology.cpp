// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/topology.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"

namespace wq {

std::string fingerprint(const Topology& topology, const std::string& more) {
    std::string groups = more;
    for (const CpuSet& core : topology.cores) groups += core.list() + ";";
    for (const Llc& llc : topology.llcs) groups += "llc " + llc.cpus.list() + ";";
    for (const NumaNode& node : topology.nodes) groups += "node " + node.cpus.list() + ";";
    std::size_t cpus = 0;
    for (const CpuSet& core : topology.cores) cpus += core.count();
    return fmt::format("{} CPUs, {} cores, {}, {:016x}", cpus, topology.cores.size(),
                       plural(topology.llcs.size(), "LLC"), hash_of(groups));
}

}  // namespace wq
