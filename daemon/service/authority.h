// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <functional>

#include "base/result.h"

namespace wq {

// Runs ORDER for the sender of MESSAGE and replies. For root it runs at once. For others it runs when polkit
// authorizes ACTION; this may need a password and does not block. While 16 users are being asked, polkit
// decides about others without interaction. While 64 questions are pending, further requests are rejected.
// Without polkit, only root is allowed. Returns the result for an sd-bus method handler.
int carry_out(sd_bus_message* message, bool by_root, const char* action, std::function<Status()> order);

// Before a bus is closed: on a closed bus no question is answered, and each would hold its place, and the
// bus.
void forget_questions();

}  // namespace wq
