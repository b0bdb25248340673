// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/result.h"
#include "machine/paths.h"

namespace wq {

// Restores settings when no daemon runs. ExecStopPost= and OnFailure= run the program wq-tuned-restore. It
// needs only the C library, so that it works even if a half-finished upgrade prevents the daemon from being
// loaded. So it reads no policy and does not use the bus: the daemon leaves the necessary information in the
// runtime directory.

// Records whether the policy in force keeps settings (on_exit = "keep"). Call it whenever a policy takes
// effect.
Status mark_keep(const Paths& paths, bool keep);
// Records whether the daemon exits in order to be restarted and has left its settings in force.
Status mark_restart(const Paths& paths, bool restarting);

// Why the switch /etc/wq-tuned/disabled is on; "" if it is off. If it cannot be checked, it counts as on.
std::string why_disabled(const Paths& paths);

struct RestoreOptions {
    std::string root;  // "" is the machine
    bool all = false;  // also restore what the policy or a restart would keep, because wq-tuned is removed
};

// Writes in status.json that no daemon runs, restores our settings and removes the metrics, unless settings
// are kept or the unit is only restarted. It is a restart if the daemon recorded one and systemd reports
// success ($SERVICE_RESULT). Does nothing while a daemon or `wq-tunectl ab` runs; with `all`, this is the
// error EWOULDBLOCK. Other errors: a setting could not be restored.
Status restore_after_exit(const RestoreOptions& options);

}  // namespace wq
