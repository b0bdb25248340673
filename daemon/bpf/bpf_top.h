// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_monitor.h"

namespace wq {

// A monitor with BPF (Linux 6.6 or later, with BTF). It needs CAP_BPF and CAP_PERFMON, and holds at most 512
// workqueues that have work and 1024 functions. In a build without BPF, attach() returns an error.
std::unique_ptr<WorkMonitor> make_bpf_monitor();

}  // namespace wq
