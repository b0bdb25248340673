// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"
#include "model/core_kinds.h"

namespace wq {

// Finds the kinds of TOPOLOGY's cores: from the kernel's PMUs of Intel hybrids (/sys/devices/cpu_core,
// cpu_atom and cpu_lowpower), else from cpu_capacity (arm64, and x86 since 6.12), else from threads.
CoreKinds read_core_kinds(const Paths& paths, const Topology& topology);

}  // namespace wq
