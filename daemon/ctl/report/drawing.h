// SPDX-License-Identifier: LGPL-2.1-or-later
// What the page of `report` draws.
#pragma once

#include <string>
#include <vector>

#include "evidence/comparison.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"

namespace wq::ctl {

// The effect of each pair as a figure: PERCENT of the cost, above zero is worse; with the median and its
// interval. Values above 1000% are drawn at the edge.
std::string effects_html(const std::string& caption, const std::vector<double>& percent,
                         const Effect& effect);

struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;
    unsigned shard_size = 8;  // cores
    const Isolation& isolation;
};
// Packages, LLCs, shards, cores, threads. A core is one element in each of its LLCs (one,
// but on powerpc), with the attribute data-core, its lowest CPU. With more than 64 CPUs the drawing is
// folded.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
