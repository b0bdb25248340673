// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "ctl/command.h"

namespace wq::ctl {

// `wq-tunectl fleet merge|show|policy FILE...`: pools the ledgers of many hosts. docs/fleet.md describes it.
CommandRun set_up_fleet(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
