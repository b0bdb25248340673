// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ctl/options.h"
#include "model/kernel_info.h"
#include "model/topology.h"

namespace wq::ctl {

// What `wq-tunectl topology` prints, without its warnings. KERNEL: for its pods.
nlohmann::ordered_json topology_json(const Topology& topology, const KernelInfo& kernel, unsigned shard_size);
// COLUMNS: width of the terminal.
std::string topology_table(const Topology& topology, const KernelInfo& kernel, unsigned shard_size,
                           std::size_t columns);

}  // namespace wq::ctl
