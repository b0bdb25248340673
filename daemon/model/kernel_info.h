// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/kernel_pods.h"
#include "model/scope.h"

namespace wq {

// Capabilities of the running kernel, found by feature detection: distributions backport, so versions prove
// nothing.
struct KernelInfo {
    std::string release;                       // empty if the source is not a running kernel
    std::vector<Scope> scopes;                 // finest first; empty before 6.6, without scopes
    std::optional<unsigned> cache_shard_size;  // cores; empty if the kernel has no cache_shard
    bool default_on_cmdline = false;           // workqueue.default_affinity_scope= is given
    bool default_writable = true;              // the module parameter default_affinity_scope
    bool switched_off = false;                 // wq_tuned=off
    std::string cpus_held_back;                // boot options that kept CPUs offline ("nosmt and maxcpus=4")
    std::optional<KernelPods> pods;  // as read from the running kernel; empty if they cannot be read
    std::string pods_unread;         // why they cannot be read; "" if nobody tried

    [[nodiscard]] bool has(Scope scope) const;
    // The scope that `default` means on a freshly booted kernel.
    [[nodiscard]] Scope default_scope() const {
        return has(Scope::cache_shard) ? Scope::cache_shard : Scope::cache;
    }
};

}  // namespace wq
