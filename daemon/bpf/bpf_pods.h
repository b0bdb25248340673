// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"
#include "machine/kernel_info.h"

namespace wq {

// Reads the pods that the running kernel made at boot (kernel/workqueue.c, wq_pod_types). Loads one BPF
// program, runs it once and unloads it. Needs BTF, CAP_BPF, CAP_PERFMON and, for the variable's address,
// CAP_SYSLOG with kernel.kptr_restrict below 2. The error says which is missing (EPERM: a capability or
// lockdown; ENOENT: no BTF, or a kernel without CONFIG_KALLSYMS_ALL). Temporary memory: CPUs^2 * 6/8 bytes.
Result<KernelPods> read_kernel_pods();

}  // namespace wq
