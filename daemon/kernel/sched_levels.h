// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>

#include "kernel/paths.h"

namespace wq {

// The levels of scheduling domains that a kernel was built with. Empty: not known.
struct SchedLevels {
    std::optional<bool> clusters;  // CONFIG_SCHED_CLUSTER
    std::optional<bool> mc;        // CONFIG_SCHED_MC
    friend bool operator==(const SchedLevels&, const SchedLevels&) = default;
};

// Those of the kernel below PATHS: by its configuration in /boot or /lib/modules, else by its types (BTF:
// megabytes, for a moment). All of these are readable to everybody. What the running kernel has is read once.
SchedLevels read_sched_levels(const Paths& paths);

}  // namespace wq
