// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include "base/journal.h"

namespace wq {

// org.freedesktop.LogControl1, for `systemctl service-log-level`. Everybody reads; setting is for root.
// JOURNAL must outlive BUS. A negative errno where it fails, as sd-bus has it.
int add_log_control(sd_bus* bus, Journal& journal);

}  // namespace wq
