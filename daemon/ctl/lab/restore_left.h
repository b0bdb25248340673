// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>
#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "ctl/lab/file_switcher.h"
#include "ctl/lab/left_store.h"
#include "ctl/lab/value_file.h"

namespace wq::ab {

// Restores what STORE has, and clears it. Restores a file only if its content may be ours, and checks it
// afterwards; the value of an external writer stays. SHELL runs the `undo` of an arm. Runs an undo that
// failed before only if AGAIN. Logs what cannot be restored and keeps it in STORE. Returns whether nothing is
// left.
bool restore_left(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again);

// Lets systemd move PID, one of our processes, into its own scope unit (wq-tunectl-COMMAND-PID.scope), so
// that it survives if our whole cgroup is killed (a logout, `systemctl kill`, the OOM killer). Returns when
// the process is there; waits at most two seconds for the bus, and as long for systemd. If systemd is not the
// init system, does nothing and returns no error.
Status into_own_scope(pid_t pid, const std::string& command);

}  // namespace wq::ab
