// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/topology.h"

#include <fmt/format.h>
#include <algorithm>
#include <type_traits>

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

namespace {

auto& cpus_of(auto& group) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(group)>, CpuSet>)
        return group;
    else
        return group.cpus;
}

// Merges each group of NOW with all groups of ALL that share CPUs with it, or adds it. Several share CPUs
// with it if their CPUs were never online at the same time before.
template <class Group>
void join(std::vector<Group>& all, const std::vector<Group>& now) {
    for (Group group : now) {
        const auto shares = [&](const Group& g) { return cpus_of(g).intersects(cpus_of(group)); };
        const auto home = std::ranges::find_if(all, shares);
        if (home == all.end()) {
            all.push_back(group);
            continue;
        }
        for (auto other = home + 1; other != all.end(); ++other)
            if (shares(*other)) cpus_of(*home) |= cpus_of(*other);
        all.erase(std::remove_if(home + 1, all.end(), shares), all.end());
        cpus_of(*home) |= cpus_of(group);
    }
    std::ranges::sort(all, {}, [](const Group& group) { return cpus_of(group).first(); });
}

}  // namespace

void KnownCpus::see(const Topology& now) {
    const CpuSet usable = now.online - now.isolated;  // an isolated CPU has lost its LLC
    const bool in_doubt = !now.warnings.empty();
    if (first_.empty()) first_ = now.first;
    if (first_.empty() && !in_doubt) first_ = usable;
    if (known_.empty() || (!in_doubt && usable.contains(known_))) {
        all_ = now;
    } else {
        all_.present = now.present;
        all_.possible = now.possible;
        all_.isolated = now.isolated;
        all_.warnings = now.warnings;
        all_.llc_unknown = now.llc_unknown;
        if (!in_doubt) {
            all_.online |= now.online;
            join(all_.cores, now.cores);
            join(all_.llcs, now.llcs);
            join(all_.nodes, now.nodes);
        }
    }
    if (!in_doubt) known_ |= usable & first_;
}

}  // namespace wq
