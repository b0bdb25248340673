// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "machine/kernel_info.h"
#include "machine/paths.h"

namespace wq {

// Sets the pods of KERNEL, or the reason why they are not known. Uses the file of `wq-tuned --pods`, else
// BPF. With a root in PATHS there are no pods. Contradictory pods are rejected.
void read_pods(const Paths& paths, KernelInfo& kernel);

}  // namespace wq
