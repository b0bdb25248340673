// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/lab/arms.h"
#include "policy/policy.h"
#include "targets/step.h"

namespace wq::ctl {

// What is compared: the wall time of the command in ns, or a number in its output, found with a regular
// expression (pcre2pattern(3)) that has one group. `^` and `$` match at line ends; matching is by bytes. The
// first match counts.
class Metric {
  public:
    // TEXT: "time" or a pattern. Error: EINVAL if it is not valid or does not have exactly one group.
    static Result<Metric> parse(std::string_view text);
    [[nodiscard]] bool is_time() const { return code_ == nullptr; }
    [[nodiscard]] const std::string& name() const { return name_; }  // TEXT
    // The text of the group as a decimal number above 0. Errors: no match, or not such a number.
    [[nodiscard]] Result<double> read(std::string_view output) const;

  private:
    std::string name_ = "time";
    std::shared_ptr<const void> code_;  // a compiled pcre2 pattern
};

struct AbOptions {
    // Exactly one of these four: scopes of a target, values of a file, commands (the subject alone), or only
    // restoring what earlier runs left.
    std::string target;
    std::string file;      // absolute
    lab::Subject subject;  // of a file, whose path is not resolved yet, or of commands
    bool restore = false;
    std::vector<Arm> arms;  // of target
    bool sweep = false;     // in place of arms
    Metric metric;
    bool higher_is_better = false;
    JudgeSettings settings;
    bool all_pairs = false;
    bool json = false;
    unsigned warmup = 0;
    std::vector<std::string> command;
};

// `wq-tunectl ab`: runs the command under each arm in turn, judges, and puts back what it changed.
int ab(const std::string& root, const AbOptions& what);

// If ARGV is a call of `ab`, moves the words after its `--` to COMMAND, because CLI11 would parse them as our
// options. Returns the number of words that are left in ARGV.
int cut_command(int argc, char** argv, std::vector<std::string>& command);

}  // namespace wq::ctl
