// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <functional>

#include "model/result.h"

namespace wq {

// Carries ORDER out for the sender of MESSAGE, and replies: for root at once; for others when polkit has said
// yes to ACTION, which may take a password and is not waited for: while 16 persons are being asked, polkit
// answers for others without asking them. Where there is no polkit, root alone may. Returns what a method
// handler of sd-bus is to return.
int carry_out(sd_bus_message* message, const char* action, std::function<Status()> order);

// Whether root sent MESSAGE; the bus says who did, and is waited for.
bool is_from_root(sd_bus_message* message);

}  // namespace wq
