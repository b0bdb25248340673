// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "kernel/sched_levels.h"
#include "model/kernel_features.h"

namespace wq {

// What the types of a kernel (BTF, raw or in an object file) tell of its features; cache_shard aside. Error:
// no such file, not BTF, or a build without BPF.
Result<KernelFeatures> read_types(const std::string& path);

// The levels of scheduling domains that the types at PATH tell of. Nothing is known where there is no such
// file, or it does not tell.
SchedLevels levels_in_types(const std::string& path);

// Whether the running kernel lets BPF programs call its function NAME.
bool kernel_offers(const char* name);

}  // namespace wq
