// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "machine/kernel_info.h"
#include "machine/paths.h"

namespace wq {

// Finds out what the kernel below PATHS has. Never fails: what cannot be read counts as missing. If a boot
// option for a mitigation may turn SMT off and SMT is off now, we assume that this option did it.
KernelInfo probe_kernel(const Paths& paths);

// The scopes of every kernel since 6.6. cache_shard (7.1) is not included.
std::vector<Scope> classic_scopes();

// Detects the features of the kernel below PATHS without its version and without writes. Reads all of the
// kernel's types (some megabytes, temporarily), for the running kernel only once.
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel);

}  // namespace wq
