// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "ctl/command.h"

namespace wq::ctl {

// `wq-tunectl judge`: evaluates each trial of a recording as the daemon does with a comparison (accrue()),
// which stops where a live one would stop. With --watch, shows when harm would raise an alarm.
CommandRun set_up_judge(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
