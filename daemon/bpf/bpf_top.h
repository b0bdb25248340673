// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_monitor.h"

namespace wq {

// By BPF (Linux 6.6 or later, with BTF); needs CAP_BPF and CAP_PERFMON. Holds at most 512 workqueues that
// have work and 1024 functions. Where the build has no BPF, attach() says so.
std::unique_ptr<WorkMonitor> make_bpf_monitor();

}  // namespace wq
