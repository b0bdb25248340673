// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"

namespace wq {

// Restores settings when no daemon runs, for ExecStopPost= and OnFailure=. It needs only the C library, so
// that it works in the middle of an upgrade: it reads no policy and no bus, but what the daemon left in /run.

// What the daemon records for its end by an empty file. If that is absent or cannot be examined, the settings
// are restored.
enum class Mark : std::uint8_t {
    keep,     // the policy in force keeps settings (on_exit = "keep")
    restart,  // the daemon exits in order to be restarted and has left its settings in force
};
Status set_mark(const Paths& paths, Mark mark, bool there);

// Why the switch /etc/wq-tuned/disabled is on; "" if it is off. If it cannot be checked, it counts as on.
std::string why_disabled(const Paths& paths);
bool keeps_settings(const Paths& paths);  // Mark::keep, and this switch is off
// The kill switch that is on; "" if none is.
std::string why_switched_off(const KernelInfo& kernel, const Paths& paths);

struct RestoreOptions {
    std::string root;  // "" is the machine
    bool all = false;  // also restore what the policy or a restart would keep, because wq-tuned is removed
};

// Writes in status.json that no daemon runs, restores our settings and removes the metrics, unless settings
// are kept or the unit is only restarted: the daemon recorded that, and $SERVICE_RESULT is success. Does
// nothing while a daemon or `wq-tunectl ab` runs; with `all`, this is the error EWOULDBLOCK.
Status restore_after_exit(const RestoreOptions& options);

}  // namespace wq
