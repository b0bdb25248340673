// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>

namespace wq {

// What the running kernel has, beyond what a plan asks for. Empty: it cannot be told here.
struct KernelFeatures {
    std::optional<bool> cache_shard;
    std::optional<bool> exact_parsing;     // `cache_shard` is never taken for `cache`
    std::optional<bool> deferred_wakeups;  // workers are woken after pool->lock was released
    std::optional<bool> pwlocks;           // per-CPU work can be done from another CPU, under a lock
};

}  // namespace wq
