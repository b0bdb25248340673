// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/kernel_info.h"
#include "model/policy.h"
#include "model/topology.h"
#include "model/workqueue.h"

namespace wq {

// A word for the kernel command line.
struct BootOption {
    std::string option;  // "workqueue.cache_shard_size=6"
    std::string reason;
};

struct BootAdvice {
    std::vector<BootOption> options;  // each once; none where the run-time knobs reach the plan
    std::vector<std::string> notes;   // what else is worth knowing before a reboot
};

struct BootInput {
    const Topology& topology;
    const KernelInfo& kernel;
    const Policy& policy;
    const std::vector<Workqueue>& targets;
    std::string pods_unknown;            // as for a plan
    std::optional<unsigned> shard_size;  // cores, where somebody asks for a size
    std::string asked_by;                // who: "--shard-size", "FILE:LINE"
    // Targets that a trial left where they were because their work stays on the pools that it is on.
    std::set<std::string> on_old_pools;
};

// Which boot options bring about what is planned and cannot be had at run time. It touches nothing and keeps
// nothing.
BootAdvice advise_boot(const BootInput& input);

}  // namespace wq
