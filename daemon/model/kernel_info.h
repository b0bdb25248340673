// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/kernel_pods.h"
#include "model/scope.h"

namespace wq {

// What the running kernel can do, found by feature: distribution kernels backport, so versions say nothing.
struct KernelInfo {
    std::string release;                       // empty where the source is not a running kernel
    std::vector<Scope> scopes;                 // finest first; empty before 6.6, which has no affinity scopes
    std::optional<unsigned> cache_shard_size;  // cores; only kernels that have cache_shard
    bool default_on_cmdline = false;           // workqueue.default_affinity_scope=: an administrator's word
    bool default_writable = true;              // the module parameter default_affinity_scope
    bool switched_off = false;                 // wq_tuned=off
    std::string cpus_held_back;      // the boot option that kept CPUs offline at boot ("nosmt"), or ""
    std::optional<KernelPods> pods;  // as read from the running kernel; empty where they cannot be
    std::string pods_unread;         // why not; "" where nobody tried

    [[nodiscard]] bool has(Scope scope) const;
    // The scope that `default` means on a kernel fresh from boot.
    [[nodiscard]] Scope default_scope() const {
        return has(Scope::cache_shard) ? Scope::cache_shard : Scope::cache;
    }
};

}  // namespace wq
