// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "bpf/work_monitor.h"
#include "bpf/work_profile.h"
#include "kernel/paths.h"

namespace wq::ctl {

struct IsolationOptions {
    double seconds = 5;
    bool json = false;
};

struct IsolationTools {
    Paths paths;              // of /proc and /sys
    WorkMonitor& statistics;  // for the names of workqueues
    WorkProfile& profile;
};

// `wq-tunectl status --isolation`: watches the isolated CPUs for a while, and prints which work started on
// them and who queued it. It needs neither the daemon nor an experiment. A signal ends the look early; then
// it prints what was seen so far. If no CPU is isolated, it says so and attaches nothing.
int isolation(const IsolationOptions& options, const IsolationTools& tools);

}  // namespace wq::ctl
