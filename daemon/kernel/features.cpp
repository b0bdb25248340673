// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/features.h"

#include "kernel/btf_types.h"

namespace wq {

KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel) {
    KernelFeatures out = read_types(paths.btf()).value_or(KernelFeatures{});
    out.cache_shard = kernel.has(Scope::cache_shard);
    return out;
}

}  // namespace wq
