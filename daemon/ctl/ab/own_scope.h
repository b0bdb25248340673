// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace wq::ab {

// Has systemd move PID, a process of ours, into a scope unit of its own (wq-tunectl-ab-PID.scope), so that
// what kills our whole cgroup (a logout, `systemctl kill`, the OOM killer) does not reach it. Returns when it
// is there; waits two seconds at most for the bus, and as long for systemd. Nothing happens, and no error,
// where systemd is not the init system.
Status into_own_scope(pid_t pid);

}  // namespace wq::ab
