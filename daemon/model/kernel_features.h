// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wq {

// Features of the running kernel that planning does not need. Empty: not known.
struct KernelFeatures {
    std::optional<bool> cache_shard;
    std::optional<bool> exact_parsing;     // the kernel never parses `cache_shard` as `cache`
    std::optional<bool> deferred_wakeups;  // the kernel wakes workers after it released pool->lock
    std::optional<bool> pwlocks;           // another CPU can do per-CPU work under a lock
};

// Features by the names used in `wq-tunectl status` and in policies.
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
