// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/kernel_info.h"

namespace wq {

// Adds to KERNEL the pods that it made at boot, or why they are not known: as `wq-tuned --pods` left them,
// else read by BPF. A tree of PATHS has none, and what contradicts itself is not believed.
void read_pods(const Paths& paths, KernelInfo& kernel);

}  // namespace wq
