// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/workqueue.h"
#include "policy/policy.h"

namespace wq {

// An option for the kernel command line.
struct BootOption {
    std::string option;  // "workqueue.cache_shard_size=6"
    std::string reason;
};

struct BootAdvice {
    std::vector<BootOption> options;  // no duplicates; empty if settings at run time are enough
    std::vector<std::string> notes;   // other facts that matter before a reboot
};

struct BootInput {
    const Topology& topology;
    const KernelInfo& kernel;
    const Policy& policy;
    const std::vector<Workqueue>& targets;
    std::string pods_unknown;            // as in PlanInput
    std::optional<unsigned> shard_size;  // cores; only if a size was requested
    std::string asked_by;                // where the size comes from: "--shard-size", "FILE:LINE"
    // Targets that a candidate did not change because their work stays on its old pools.
    std::set<std::string> on_old_pools;
};

// Returns the boot options for planned settings that cannot be set at run time. No side effects.
BootAdvice advise_boot(const BootInput& input);

// What the kernel's own options do to workqueues. 0 and empty: not known, or not given.
struct BootFacts {
    std::string cmdline;
    CpuSet isolated;   // until the next boot, by isolcpus= or nohz_full=
    CpuSet nohz_full;  // of these, by nohz_full=
    bool pwlocks = false;
    bool power_efficient = false;              // in force
    std::optional<std::uint64_t> hog_us = {};  // workqueue.cpu_intensive_thresh_us
};

// Notes about options that matter here, whatever the plan is. No side effects.
std::vector<std::string> notes_on(const BootFacts& facts);

}  // namespace wq
