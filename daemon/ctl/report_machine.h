// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "model/isolation.h"
#include "model/topology.h"

namespace wq::ctl {

// The section of a report that draws a machine: packages, LLCs, shards of SHARD_SIZE cores, cores, threads.
// Every core of TOPOLOGY is one element with the attribute data-core, whose value is its lowest CPU.
std::string machine_html(const Topology& topology, unsigned shard_size, const Isolation& isolation);

}  // namespace wq::ctl
