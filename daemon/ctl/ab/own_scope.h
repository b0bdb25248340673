// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace wq::ab {

// Lets systemd move PID, one of our processes, into its own scope unit (wq-tunectl-COMMAND-PID.scope), so
// that it survives if our whole cgroup is killed (a logout, `systemctl kill`, the OOM killer). Returns when
// the process is there; waits at most two seconds for the bus, and as long for systemd. If systemd is not the
// init system, does nothing and returns no error.
Status into_own_scope(pid_t pid, const std::string& command);

}  // namespace wq::ab
