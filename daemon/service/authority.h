// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <functional>

#include "base/result.h"

namespace wq {

// Carries ORDER out for the sender of MESSAGE, and replies: for root at once; for others when polkit has said
// yes to ACTION, which may take a password and is not waited for: while 16 persons are being asked, polkit
// answers for others without asking them, and while it is asked 64 questions no other is. Where there is no
// polkit, root alone may. Returns what a method handler of sd-bus is to return.
int carry_out(sd_bus_message* message, bool by_root, const char* action, std::function<Status()> order);

}  // namespace wq
