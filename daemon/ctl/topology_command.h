// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/options.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"

namespace wq::ctl {

// The output of `wq-tunectl topology` without its warnings. KERNEL: for its pods.
nlohmann::ordered_json topology_json(const Topology& topology, const KernelInfo& kernel, unsigned shard_size);
// COLUMNS: width of the terminal.
std::string topology_table(const Topology& topology, const KernelInfo& kernel, unsigned shard_size,
                           std::size_t columns);

// Pods of the kernel that differ from the model. Plans use the kernel's pods.
struct OwnPods {
    std::string text;               // "The kernel's pods of smt differ ... The kernel has 2 pods:"
    std::vector<std::string> cpus;  // CPU list of each pod
};
std::vector<OwnPods> kernels_own(const Topology& topology, const KernelInfo& kernel);
// Why the kernel's own pods were not read, as a sentence; "" if they were read or were not to be read.
std::string why_not_its_own(const KernelInfo& kernel);
// Why the LLCs shown may differ from the kernel's, as a sentence; "" if they are the same.
std::string why_in_doubt(const Topology& topology, const KernelInfo& kernel);

}  // namespace wq::ctl
