// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/command.h"
#include "ctl/lab/file_switcher.h"
#include "ctl/lab/metric.h"
#include "ctl/options.h"
#include "policy/judge_settings.h"
#include "targets/step.h"

namespace wq::ctl {

struct AbOptions {
    // Exactly one of these four is set: scopes of a target, values of a file, commands, or only restoring
    // what earlier runs left.
    std::string target;
    std::string file;  // absolute
    std::vector<ab::CommandArm> command_arms;
    bool restore = false;
    std::vector<Arm> arms;                                   // of target
    bool sweep = false;                                      // in place of arms
    std::vector<std::string> values;                         // of file
    std::vector<std::string> arm_names, arm_dos, arm_undos;  // as given; command_arms has the result
    std::string metric;                                      // as given
    std::optional<ab::Metric> pattern;                       // empty: wall time
    bool higher_is_better = false;
    JudgeSettings settings;
    bool all_pairs = false;
    bool ignore_failure = false;
    bool show_output = false;
    bool json = false;
    unsigned warmup = 0;
    std::string recording;  // file for `judge`; "" = none
    std::vector<std::string> command;
};

// `wq-tunectl ab`: runs the command under each arm in turn, judges, and puts back what it changed.
int ab(const Options& options, const AbOptions& what);

CommandRun set_up_ab(CLI::App& command, const Invocation& invocation);

// If ARGV is a call of `ab`, moves the words after its `--` to COMMAND, because CLI11 would parse them as our
// options. Returns the number of words that are left in ARGV.
int cut_command(int argc, char** argv, std::vector<std::string>& command);

}  // namespace wq::ctl
