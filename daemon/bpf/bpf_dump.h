// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "machine/kernel_dump.h"

namespace wq {

// Reads all worker pools, workqueues and pods of the running kernel. Needs the same as read_kernel_pods(),
// and also unloads everything. Runs the BPF program once per workqueue and once per 64 pools, so neither the
// memory (1 MiB) nor the time of a run grows with their number. Up to 16384 CPUs and 1024 nodes. Additional
// error: EAGAIN if the list of workqueues changed during each of three tries.
Result<KernelDump> read_kernel_dump();

}  // namespace wq
