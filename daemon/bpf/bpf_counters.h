// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_counters.h"

namespace wq {

// Counters by BPF (Linux 6.6 or later, with BTF), which need CAP_BPF and CAP_PERFMON. Nothing is loaded
// before attach() or traffic(). Where the build has no BPF, both fail and say so.
std::unique_ptr<WorkCounters> make_bpf_counters();

}  // namespace wq
