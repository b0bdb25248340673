// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <memory>
#include <string_view>

#include "ctl/ab/ab_command.h"
#include "ctl/ab/ab_report.h"
#include "ctl/ab/arms.h"
#include "ctl/setting_option.h"

namespace wq::ctl {
namespace {

constexpr unsigned kMostWarmups = 1000;

}  // namespace

int cut_command(int argc, char** argv, std::vector<std::string>& command) {
    int at = 1;
    for (; at < argc && *argv[at] == '-'; at++)
        if (std::string_view(argv[at]) == "--root") at++;
    if (at >= argc || std::string_view(argv[at]) != "ab") return argc;
    char** const end = argv + argc;
    char** const dashes =
        std::find_if(argv + at, end, [](const char* word) { return std::string_view(word) == "--"; });
    if (dashes == end) return argc;
    command.assign(dashes + 1, end);
    return static_cast<int>(dashes - argv);
}

CommandRun set_up_ab(CLI::App& command, const Invocation& invocation) {
    const auto what = std::make_shared<AbOptions>();
    CLI::App* const ab = &command;
    ab->add_option("--target", what->target, "A workqueue's name, or @default")
        ->type_name(word::kTarget)
        ->required()
        ->check(not_empty);
    const auto take_arms = [what](const std::string& text) {
        auto arms = ab::parse_arms(text);
        if (!arms) throw CLI::ValidationError("--arms", arms.error().text);
        what->arms = std::move(*arms);
    };
    auto* arms = ab->add_option_function<std::string>(
                       "--arms", take_arms, "The baseline and others; SCOPE:strict for a strict one")
                     ->type_name(word::kScopes);
    auto* sweep = ab->add_flag("--sweep", what->sweep,
                               "All scopes that make different pools, against the one in place");
    arms->excludes(sweep);
    const auto take_metric = [what](const std::string& text) {
        if (text == kTimeCounter) return;
        auto metric = ab::Metric::parse(text);
        if (!metric) throw CLI::ValidationError("--metric", metric.error().text);
        what->metric = text;
        what->pattern = std::move(*metric);
    };
    ab->add_option_function<std::string>(
          "--metric", take_metric, "time, or a pattern with one group: a number in the command's output")
        ->type_name(word::kMetric);
    ab->add_flag("--higher-is-better", what->higher_is_better, "More of the metric is better");
    add_setting(*ab, "--pairs", "Runs of each arm, at most; 16", parse_max_pairs, what->settings.max_pairs);
    ab->add_flag("--all-pairs", what->all_pairs, "Do not stop at verdicts");
    add_setting(*ab, "--alpha", "Chance of a wrong verdict on a harmless arm, at most, on each side; 0.05",
                parse_alpha, what->settings.alpha);
    add_setting(*ab, "--tolerance", "What an arm may cost, as in 5%; 0%", parse_tolerance,
                what->settings.tolerance);
    ab->add_option("--warmup", what->warmup, "Runs before the first that counts; 0")
        ->type_name(word::kNumber)
        ->check(decimal)
        ->check(CLI::Range(0U, kMostWarmups));
    ab->add_flag("--ignore-failure", what->ignore_failure, "Runs that fail count too");
    ab->add_flag("--show-output", what->show_output, "The command's output, to stderr");
    ab->add_option("--export", what->recording, "A CSV file to write: the pairs, for `wq-tunectl judge`")
        ->type_name(word::kFile)
        ->check(not_empty);
    ab->add_flag("--json", what->json, "For machines");
    return [what, &invocation] {
        if (what->arms.empty() && !what->sweep)
            throw CLI::ValidationError("ab", "--arms or --sweep is required");
        if (what->higher_is_better && !what->pattern)
            throw CLI::ValidationError("--higher-is-better",
                                       "more time is not better; it goes with a --metric");
        if (invocation.command.empty())
            throw CLI::ValidationError("ab", "the command to run is missing: ab ... -- COMMAND...");
        what->command = invocation.command;
        Options options;
        options.root = invocation.root;
        return ctl::ab(options, *what);
    };
}

}  // namespace wq::ctl
