// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/kernel_features.h"
#include "model/kernel_info.h"

namespace wq {

// Detects the features of the kernel below PATHS without its version and without writes. Reads all of the
// kernel's types (some megabytes, temporarily), for the running kernel only once.
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel);

}  // namespace wq
