// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/kernel_info.h"

namespace wq {

// Looks at what the kernel below PATHS has. Never fails: what cannot be read is not there. A mitigation that
// may turn SMT off at boot is believed to have done so if SMT is off at this look.
KernelInfo probe_kernel(const Paths& paths);

// The scopes of every kernel since 6.6, without cache_shard (7.1).
std::vector<Scope> classic_scopes();

}  // namespace wq
