// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace wq::ctl {

// Calls METHOD of the daemon. Users other than root may be asked for a password on the terminal. Errors: as
// in call_daemon().
Status order_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments);

}  // namespace wq::ctl
