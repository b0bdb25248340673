// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_monitor.h"
#include "ctl/command.h"
#include "ctl/top/top_rates.h"
#include "ctl/top/top_table.h"

namespace wq::ctl {

struct TopOptions {
    std::vector<std::string> names;  // of workqueues, as in sysfs; none: all
    double interval = 1;             // seconds
    std::optional<unsigned> iterations;
    bool json = false;
    bool once = false;
    bool functions = false;
    TopOrder order;  // key "": by rate, functions by busy
};

// `wq-tunectl top`: what workqueues do, interval by interval, until it is told to end. On a terminal a screen
// that takes keys; else, or where --once, -n or --json is given, text. A look at the kernel that fails in a
// way that passes (passes()) is left out.
int top(const TopOptions& options, WorkMonitor& monitor);

// One interval as the contract of `top --json` has it.
nlohmann::ordered_json interval_json(const TopInterval& interval, const TopOptions& options,
                                     const std::string& limits);
// One interval as text, COLUMNS wide: idle workqueues only by their number, unless they are named.
std::string interval_text(const TopInterval& interval, const TopOptions& options, std::size_t columns);

CommandRun set_up_top(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
