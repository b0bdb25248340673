// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/core_kinds.h"
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
    CoreKinds kinds = {};
};

// The drawing of a machine with more CPUs than these is folded: one line stands for it until the reader opens
// it.
inline constexpr std::size_t kMostUnfolded = 64;

// The section of a report that draws a machine: packages, LLCs, shards, cores, threads. Every core of the
// topology is one element with the attribute data-core, whose value is its lowest CPU. Packages that share an
// LLC are one box. The cores of a hybrid are drawn and named by their kinds.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
