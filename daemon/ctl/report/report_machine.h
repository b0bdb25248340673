// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/core_kinds.h"
#include "model/isolation.h"
#include "model/kernel_info.h"
#include "model/topology.h"

namespace wq::ctl {

// Input for the drawing of a machine.
struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;  // its own pods are listed beside the drawing
    unsigned shard_size = 8;   // cores
    const Isolation& isolation;
    CoreKinds kinds = {};
};

// With more CPUs than this, the drawing is folded: the reader must open it.
inline constexpr std::size_t kMostUnfolded = 64;

// The report section with the drawing of a machine: packages, LLCs, shards, cores, threads. Every core of
// the topology is one element with the attribute data-core, whose value is its lowest CPU. Packages that
// share an LLC are in one box. The cores of a hybrid are drawn and named by their kinds.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
