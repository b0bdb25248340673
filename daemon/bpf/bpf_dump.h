// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "machine/kernel_dump.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"

namespace wq {

// Reads all worker pools, workqueues and pods of the running kernel, and unloads everything. Needs BTF,
// CAP_BPF, CAP_PERFMON and, for the addresses of variables, CAP_SYSLOG with kernel.kptr_restrict below 2. The
// error says which is missing, or is EAGAIN if the list of workqueues changed during each of three tries. Up
// to 16384 CPUs and 1024 nodes.
Result<KernelDump> read_kernel_dump();

// Reads only the pods, which the kernel made at boot (kernel/workqueue.c, wq_pod_types). Needs the same.
// Temporary memory: 1 MiB and CPUs^2 * 6/8 bytes.
Result<KernelPods> read_kernel_pods();

// Sets the pods of KERNEL, or the reason why they are not known. Uses the file of `wq-tuned --pods`, else
// read_kernel_pods(). With a root in PATHS there are no pods. Contradictory pods are rejected.
void read_pods(const Paths& paths, KernelInfo& kernel);

}  // namespace wq
