// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wq {

// What the running kernel has, beyond what a plan asks for. Empty: it cannot be told here.
struct KernelFeatures {
    std::optional<bool> cache_shard;
    std::optional<bool> exact_parsing;     // `cache_shard` is never taken for `cache`
    std::optional<bool> deferred_wakeups;  // workers are woken after pool->lock was released
    std::optional<bool> pwlocks;           // per-CPU work can be done from another CPU, under a lock
};

// By the names that `wq-tunectl status` and a policy have for them.
struct NamedFeature {
    std::string_view name;
    std::optional<bool> KernelFeatures::*value;
};
inline constexpr std::array kFeatures = {
    NamedFeature{"cache_shard", &KernelFeatures::cache_shard},
    NamedFeature{"exact_parsing", &KernelFeatures::exact_parsing},
    NamedFeature{"deferred_wakeups", &KernelFeatures::deferred_wakeups},
    NamedFeature{"pwlocks", &KernelFeatures::pwlocks},
};

}  // namespace wq
