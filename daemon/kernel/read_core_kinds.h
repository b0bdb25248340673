// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/core_kinds.h"

namespace wq {

// The kinds of TOPOLOGY's cores, as the tree tells them: by the kernel's PMUs of Intel hybrids
// (/sys/devices/cpu_core, cpu_atom and cpu_lowpower), by cpu_capacity (arm64, and x86 since 6.12), else by
// threads.
CoreKinds read_core_kinds(const Paths& paths, const Topology& topology);

}  // namespace wq
