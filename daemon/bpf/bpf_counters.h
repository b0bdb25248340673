// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_counters.h"

namespace wq {

// Counters with BPF (Linux 6.6 or later, with BTF). They need CAP_BPF and CAP_PERFMON. Nothing is loaded
// before attach() or traffic(); in a build without BPF, both return an error.
std::unique_ptr<WorkCounters> make_bpf_counters();

}  // namespace wq
