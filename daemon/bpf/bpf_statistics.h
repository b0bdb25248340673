// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "bpf/work_monitor.h"

namespace wq {

// A monitor without a probe: only what the kernel itself counts per workqueue. It has no times and no
// functions, and attach() does not check that the workqueues exist. Needs the same as WorkqueueWalk.
std::unique_ptr<WorkMonitor> make_statistics_monitor();

}  // namespace wq
