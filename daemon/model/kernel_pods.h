// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <vector>

#include "base/cpu_set.h"
#include "model/scope.h"

namespace wq {

// One pod as the running kernel made it at boot (kernel/workqueue.c, wq_pod_types): possible CPUs, including
// offline ones.
struct KernelPod {
    CpuSet cpus;
    int node = -1;  // NUMA node; -1 if the kernel gives none
    friend bool operator==(const KernelPod&, const KernelPod&) = default;
};

// All pods, in the kernel's order, for each scope that this kernel has. The pods of a scope are disjoint.
using KernelPods = std::map<Scope, std::vector<KernelPod>>;

}  // namespace wq
