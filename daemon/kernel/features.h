// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/kernel_features.h"
#include "model/kernel_info.h"

namespace wq {

// What the kernel below PATHS has, found by what it shows and nothing else: no version is asked, nothing is
// written. Reads all of the kernel's types (megabytes, for a moment); those of the running kernel once.
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel);

}  // namespace wq
