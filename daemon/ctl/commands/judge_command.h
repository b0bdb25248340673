// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "model/judge_settings.h"

namespace wq::ctl {

struct JudgeOptions {
    std::string file;
    bool json = false;
    JudgeSettings settings = {};
};

// `wq-tunectl judge`: the verdicts on recorded trials, each stopped where a live one would have stopped.
int judge(const JudgeOptions& options);

// Adds the command to APP. Its exit code goes to CODE once it has run.
void add_judge(CLI::App& app, int& code);

}  // namespace wq::ctl
