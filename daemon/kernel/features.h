// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/kernel_features.h"
#include "model/kernel_info.h"

namespace wq {

// What the kernel below PATHS has, found by what it shows and nothing else: no version is asked, nothing is
// written. Reads all of the kernel's types (megabytes, for a moment).
KernelFeatures read_features(const Paths& paths, const KernelInfo& kernel);

// Adds to KERNEL the pods that it made at boot, or why they are not known: as `wq-tuned --pods` left them,
// else read by BPF. A tree of PATHS has none, and what contradicts itself is not believed.
void read_pods(const Paths& paths, KernelInfo& kernel);

}  // namespace wq
