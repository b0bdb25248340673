// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>

#include "kernel/paths.h"

namespace wq {

// The scheduling-domain levels that a kernel was built with. Empty: not known.
struct SchedLevels {
    std::optional<bool> clusters;  // CONFIG_SCHED_CLUSTER
    std::optional<bool> mc;        // CONFIG_SCHED_MC
    friend bool operator==(const SchedLevels&, const SchedLevels&) = default;
};

// Reads the levels of the kernel below PATHS: from its configuration in /boot or /lib/modules, else from its
// types (BTF: some megabytes, temporarily). Everybody can read these files. For the running kernel they are
// read once.
SchedLevels read_sched_levels(const Paths& paths);

}  // namespace wq
