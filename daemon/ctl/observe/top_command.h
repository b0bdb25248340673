// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "bpf/work_monitor.h"
#include "ctl/command.h"
#include "ctl/observe/top_table.h"

namespace wq::ctl {

// `wq-tunectl top`: shows the activity of workqueues per interval until it is stopped. On a terminal it
// shows a screen and reads keys; otherwise, or with --once, -n or --json, it prints text. A sample that
// fails temporarily (passes()) is skipped.
int top(const TopOptions& options, WorkMonitor& monitor);

// `top --replay`: shows a recording, the output of `top --json --functions`, instead of the kernel. A screen
// shows it at the speed of the recording.
int replay(const TopOptions& options);

CommandRun set_up_top(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
