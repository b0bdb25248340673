// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "kernel/paths.h"

namespace wq {

// What puts settings back where no daemon runs: the program wq-tuned-restore, which ExecStopPost= and
// OnFailure= run. It needs the C library alone, so that it works where an upgrade that is half done keeps the
// daemon from being loaded. So it reads no policy and asks no bus: what it must know, the daemon leaves in
// the runtime directory.

// Whether the policy in force keeps settings (on_exit = "keep"). To be told whenever one is taken into use.
Status mark_keep(const Paths& paths, bool keep);
// Whether the daemon ends in order to be started again, and left its settings in force for that.
Status mark_restart(const Paths& paths, bool restarting);

// Why the switch /etc/wq-tuned/disabled is on; "" where it is off. What cannot be looked at is taken for on.
std::string why_disabled(const Paths& paths);

struct RestoreOptions {
    std::string root;  // "" is the machine
    bool all = false;  // also what the policy keeps, and in a restart: wq-tuned is removed
};

// Puts back what is ours, and removes the metrics, unless settings are kept or the unit is only being
// restarted: that is so where the daemon said so and systemd calls its end a success ($SERVICE_RESULT).
// Does nothing where a daemon or `wq-tunectl ab` is at work; with `all` that is the error EWOULDBLOCK.
// Other errors: something could not be put back.
Status restore_after_exit(const RestoreOptions& options);

}  // namespace wq
