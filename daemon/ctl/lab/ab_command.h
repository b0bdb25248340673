// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ctl/command.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/rounds.h"
#include "policy/policy.h"
#include "targets/step.h"

namespace wq::ctl {

// A number in a command's output, found with a regular expression (pcre2pattern(3)) that has one group. `^`
// and `$` match at line ends; matching is by bytes. The first match counts.
class Metric {
  public:
    // Error: EINVAL if PATTERN is not valid or does not have exactly one group.
    static Result<Metric> parse(const std::string& pattern);
    // The text of the group as a decimal number above 0. Errors: no match, or not such a number.
    [[nodiscard]] Result<double> read(std::string_view output) const;

  private:
    explicit Metric(std::shared_ptr<const void> code) : code_(std::move(code)) {}
    std::shared_ptr<const void> code_;  // a compiled pcre2 pattern
};

struct AbOptions {
    // Exactly one of these four is set: scopes of a target, values of a file, commands, or only restoring
    // what earlier runs left.
    std::string target;
    std::string file;  // absolute
    std::vector<lab::CommandArm> command_arms;
    bool restore = false;
    std::vector<Arm> arms;                                   // of target
    bool sweep = false;                                      // in place of arms
    std::vector<std::string> values;                         // of file
    std::vector<std::string> arm_names, arm_dos, arm_undos;  // as given; command_arms has the result
    std::string metric;                                      // as given
    std::optional<Metric> pattern;                           // empty: wall time
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
int ab(const std::string& root, const AbOptions& what);

CommandRun set_up_ab(CLI::App& command, const Invocation& invocation);

// If ARGV is a call of `ab`, moves the words after its `--` to COMMAND, because CLI11 would parse them as our
// options. Returns the number of words that are left in ARGV.
int cut_command(int argc, char** argv, std::vector<std::string>& command);

// The result of `wq-tunectl ab`.
struct AbReport {
    std::string target;  // what the arms change; "" if it has no name
    const lab::Rounds& rounds;
    std::string stopped;  // why it ended early; "" if it did not
};

// The name of the counter for wall time, in ns. Any other counter is a number from the command's output.
inline constexpr const char* kTimeCounter = "time";

std::string ab_table(const AbReport& report, std::size_t columns, bool colour);
nlohmann::ordered_json ab_json(const AbReport& report);
// The pairs in the format that `wq-tunectl judge` reads, one `trial` per candidate. If higher values of the
// counter are better, writes the inverse as a cost.
std::string ab_recording(const AbReport& report);

}  // namespace wq::ctl
