// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "ctl/command.h"

namespace wq::ctl {

struct JudgeOptions {
    std::string file;
    bool json = false;
    double alpha = 0.05;
    double tolerance = 0;
    unsigned max_pairs = 64;
    unsigned candidates = 1;            // K: number of candidates compared with the reference
    bool watch = false;                 // use the e-detector instead of a comparison
    std::uint64_t run_length = 20'000;  // minimum average of pairs before a false alarm
};

// `wq-tunectl judge`: evaluates each trial of the file as a comparison (evidence/comparison.h) that stops
// where a live one would stop. With `watch`, shows when harm would raise an alarm.
int judge(const JudgeOptions& options);

CommandRun set_up_judge(CLI::App& command, const Invocation& invocation);

}  // namespace wq::ctl
