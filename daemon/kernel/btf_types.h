// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/kernel_features.h"

namespace wq {

// What the types of a kernel (BTF, raw or in an object file) tell of its features; cache_shard aside. Error:
// no such file, not BTF, or a build without BPF.
Result<KernelFeatures> read_types(const std::string& path);

// Whether the types at PATH are of a kernel with scheduling domains for clusters (CONFIG_SCHED_CLUSTER).
// Empty: no such file, or it does not tell.
std::optional<bool> types_have_clusters(const std::string& path);

// Whether the running kernel lets BPF programs call its function NAME.
bool kernel_offers(const char* name);

}  // namespace wq
