// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/known_cpus.h"

#include <algorithm>

namespace wq {
namespace {

CpuSet& cpus_of(CpuSet& group) {
    return group;
}
CpuSet& cpus_of(Llc& group) {
    return group.cpus;
}
CpuSet& cpus_of(NumaNode& group) {
    return group.cpus;
}

// Joins each group of NOW to the group of ALL that it shares CPUs with, or adds it.
template <class Group>
void join(std::vector<Group>& all, const std::vector<Group>& now) {
    for (Group group : now) {
        const auto home = std::find_if(all.begin(), all.end(),
                                       [&](Group& g) { return cpus_of(g).intersects(cpus_of(group)); });
        if (home == all.end())
            all.push_back(group);
        else
            cpus_of(*home) |= cpus_of(group);
    }
    std::sort(all.begin(), all.end(),
              [](Group a, Group b) { return cpus_of(a).first() < cpus_of(b).first(); });
}

}  // namespace

void KnownCpus::see(const Topology& now) {
    const CpuSet before = all_.online;
    known_ |= now.online - now.isolated;
    if (now.online.contains(before)) {
        all_ = now;
        return;
    }
    Topology merged = all_;
    merged.online |= now.online;
    merged.present = now.present;
    merged.possible = now.possible;
    merged.isolated = now.isolated;
    merged.warnings = now.warnings;
    join(merged.cores, now.cores);
    join(merged.llcs, now.llcs);
    join(merged.nodes, now.nodes);
    all_ = std::move(merged);
}

}  // namespace wq
