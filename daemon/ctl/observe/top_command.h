// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_monitor.h"
#include "ctl/command.h"
#include "ctl/observe/top_rates.h"
#include "ctl/observe/top_table.h"

namespace wq::ctl {

struct TopOptions {
    std::vector<std::string> names;  // workqueues, as in sysfs; empty: all
    double interval = 1;             // seconds
    std::optional<unsigned> iterations;
    bool json = false;
    bool once = false;
    bool functions = false;
    std::string record, replay;  // files; "": none
    TopOrder order;              // empty key: "rate", for functions "busy"
};

// `wq-tunectl top`: shows the activity of workqueues per interval until it is stopped. On a terminal it
// shows a screen and reads keys; otherwise, or with --once, -n or --json, it prints text. A sample that
// fails temporarily (passes()) is skipped.
int top(const TopOptions& options, WorkMonitor& monitor);

// `top --replay`: shows a recording instead of the kernel. A screen shows it at the speed of the recording.
int replay(const TopOptions& options);

// One interval in the format of `top --json`. TIME: its end, in seconds since 1970.
nlohmann::ordered_json interval_json(const TopInterval& interval, bool functions, const std::string& limits,
                                     std::int64_t time);
// One interval as text, COLUMNS wide. Idle workqueues are only counted, unless OPTIONS name workqueues.
std::string interval_text(const TopInterval& interval, const TopOptions& options, std::size_t columns);

CommandRun set_up_top(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
