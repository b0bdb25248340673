// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include "base/journal.h"

namespace wq {

// org.freedesktop.LogControl1, for `systemctl service-log-level`.
// JOURNAL must outlive BUS. Returns a negative errno on failure, like sd-bus.
int add_log_control(sd_bus* bus, Journal& journal);

}  // namespace wq
