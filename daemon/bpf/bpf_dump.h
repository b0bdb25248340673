// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "model/kernel_dump.h"

namespace wq {

// All worker pools and workqueues of the running kernel, and its pods. Needs what read_kernel_pods() needs,
// and leaves nothing either. One short run in the kernel for each workqueue and each 64 pools, so that
// neither memory (1 MiB) nor the time of a run grows with their number. Up to 16384 CPUs and 1024 nodes.
// Errors also: EAGAIN, the list of workqueues changed at each of three tries.
Result<KernelDump> read_kernel_dump();

}  // namespace wq
