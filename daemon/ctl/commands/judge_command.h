// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "ctl/command.h"
#include "model/judge_settings.h"

namespace wq::ctl {

struct JudgeOptions {
    std::string file;
    bool json = false;
    JudgeSettings settings = {};
};

// `wq-tunectl judge`: the verdicts on recorded trials, each stopped where a live one would have stopped.
int judge(const JudgeOptions& options);

CommandRun set_up_judge(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
