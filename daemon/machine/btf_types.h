// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/cpu_files.h"
#include "machine/kernel_info.h"

namespace wq {

// Kernel features that its types (BTF, raw or in an object file) show, except cache_shard. Error: no such
// file, or not BTF.
Result<KernelFeatures> read_types(const std::string& path);

// The scheduling-domain levels that the types at PATH show. Empty if the file is missing or does not show
// them.
SchedLevels levels_in_types(const std::string& path);

// Whether the running kernel lets BPF programs call its function NAME (a kfunc).
bool kernel_offers(const char* name);

}  // namespace wq
