// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/features.h"

#include "kernel/btf_types.h"

namespace wq {
namespace {

Result<KernelFeatures> types_of(const Paths& paths) {
    if (!paths.root.empty()) return read_types(paths.btf());
    static Result<KernelFeatures> running = fail("not read yet");
    if (!running) running = read_types(paths.btf());
    return running;
}

}  // namespace

KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel) {
    KernelFeatures out = types_of(paths).value_or(KernelFeatures{});
    out.cache_shard = kernel.has(Scope::cache_shard);
    return out;
}

}  // namespace wq
