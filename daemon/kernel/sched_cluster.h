// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>

#include "kernel/paths.h"

namespace wq {

// Whether the kernel below PATHS was built with CONFIG_SCHED_CLUSTER: by its configuration in /boot or
// /lib/modules, else by its types (BTF: megabytes, for a moment). All of these are readable to everybody.
// Empty: nothing of the kind is there.
std::optional<bool> has_sched_cluster(const Paths& paths);

}  // namespace wq
