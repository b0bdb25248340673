// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/read_pods.h"

#include <optional>

#include "bpf/bpf_pods.h"
#include "machine/pods_file.h"

namespace wq {
namespace {

// Whether the pods of each scope are disjoint and not empty, and all scopes cover the same CPUs.
bool make_sense(const KernelPods& all) {
    std::optional<CpuSet> cpus;
    for (const auto& [scope, pods] : all) {
        CpuSet seen;
        for (const KernelPod& pod : pods) {
            if (pod.cpus.empty() || pod.cpus.intersects(seen)) return false;
            seen |= pod.cpus;
        }
        if (cpus.value_or(seen) != seen) return false;
        cpus = seen;
    }
    return cpus && !cpus->empty();
}

}  // namespace

void read_pods(const Paths& paths, KernelInfo& kernel) {
    if (!paths.root.empty() || kernel.scopes.empty()) return;
    auto left = find_pods(pods_path(paths));
    auto pods = left ? std::move(*left) : read_kernel_pods();
    if (!pods)
        kernel.pods_unread = pods.error().text;
    else if (!make_sense(*pods))
        kernel.pods_unread = "the pods that were read contradict each other";
    else
        kernel.pods = std::move(*pods);
}

}  // namespace wq
