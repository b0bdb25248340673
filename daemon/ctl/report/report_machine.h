// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/isolation.h"
#include "model/kernel_info.h"
#include "model/topology.h"

namespace wq::ctl {

// What a drawing of a machine is made of.
struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;  // for its own pods, which are told beside the drawing
    unsigned shard_size = 8;   // cores
    const Isolation& isolation;
};

// The section of a report that draws a machine: packages, LLCs, shards, cores, threads. Every core of the
// topology is one element with the attribute data-core, whose value is its lowest CPU. Packages that share an
// LLC are one box.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
