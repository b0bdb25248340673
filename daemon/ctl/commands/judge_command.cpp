// SPDX-License-Identifier: LGPL-2.1-or-later
// `judge`: evaluates each trial of a recording as the daemon does with a comparison (accrue()), which stops
// where a live one would stop. With --watch, shows when harm would raise an alarm.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "ctl/command.h"
#include "ctl/commands/recording.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/accrue.h"
#include "evidence/comparison.h"
#include "evidence/json_values.h"
#include "evidence/ledger.h"
#include "evidence/verdicts.h"
#include "policy/quantity.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMaxRecording = 64U << 20U;  // bytes

// A recording's line of JSON and row of the table.
struct Answer {
    nlohmann::ordered_json line;
    std::vector<std::string> row;
};

struct JudgeOptions {
    std::string file;
    bool json = false;
    double tolerance = 0;
    bool watch = false;                  // use the e-detector instead of a comparison
    AccrualRule rule{.only_one = true};  // all of alpha is for this comparison
};

// LN M of a watch: the highest value of all counters' e-detectors, at the end.
Answer judge_one(const RecordedComparison& recorded, const JudgeOptions& options) {
    std::vector<ComparedCounter> counters = recorded.counters;
    for (ComparedCounter& counter : counters) counter.tolerance = options.tolerance;
    LedgerEntry entry;
    entry.columns = Comparison(counters).columns();
    if (options.watch) entry.judgement = Judgement::improved;
    Accrual last;
    std::size_t pairs = 0;
    for (; pairs < recorded.pairs.size() && last.turn == Turn::none; pairs++)
        last =
            accrue(entry, {{recorded.pairs[pairs].begin(), recorded.pairs[pairs].end()}, {}}, options.rule);
    if (options.watch) {
        const bool alarm = last.turn == Turn::taken_back;
        return {{{"trial", recorded.name},
                 {"alarm_at", or_null(alarm ? std::optional(pairs) : std::nullopt)},
                 {"log_m", last.watch}},
                {recorded.name, alarm ? std::to_string(pairs) : "-", fmt::format("{:.4g}", last.watch)}};
    }
    const Decision& at = last.decision;
    const Effect effect = Comparison(entry.columns).effect(at.column);
    const double worse = evidence_of(at.log_worse);
    const double better = evidence_of(at.log_better);
    return {{{"trial", recorded.name},
             {"verdict", name_of(at.judgement)},
             {"counter", at.counter},
             {"pairs", at.pairs},
             {"e_regressed", worse},
             {"e_improved", better},
             {"effect_percent", effect.percent},
             {"interval_percent", interval_or_null(effect)}},
            {recorded.name, std::string(name_of(at.judgement)), at.counter, std::to_string(at.pairs),
             fmt::format("{:.4g}", worse), fmt::format("{:.4g}", better), effect_text(effect)}};
}

// Opening a pipe blocks until there is a writer, as in cat(1).
Result<std::string> read_recording_file(const std::string& path) {
    const Fd fd(::open(path == "-" ? "/dev/stdin" : path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail_errno(path, errno);
    return read_all(fd.get(), kMaxRecording).map_error([&](const Error& e) { return e.in(path); });
}

int judge(const JudgeOptions& options) {
    const auto text = read_recording_file(options.file);
    if (!text) return complain(text.error().text);
    const auto trials = read_recording(*text);
    if (!trials)
        return complain(fmt::format("{}:{}: {}", options.file, trials.error().line, trials.error().reason));
    using Header = std::vector<std::string>;
    Table table(options.watch
                    ? Header{"COMPARISON", "ALARM AT PAIR", "LN M"}
                    : Header{"COMPARISON", "VERDICT", "COUNTER", "PAIRS", "E WORSE", "E BETTER", "EFFECT"});
    for (const RecordedComparison& trial : *trials) {
        const Answer answer = judge_one(trial, options);
        if (options.json)
            fmt::print("{}\n", json_text(answer.line));
        else
            table.add(answer.row);
    }
    if (!options.json) fmt::print("{}", table.text());
    return kOk;
}

}  // namespace

CommandRun set_up_judge(CLI::App& command, const Invocation& /*invocation*/) {
    const auto options = std::make_shared<JudgeOptions>();
    add_word(command, "FILE", options->file, word::kFile, "CSV: trial,pair,arm,counter,value")->required();
    command.add_flag("--json", options->json, kJsonHelp);
    add_setting(command, "--alpha",
                "Chance of a verdict on a change that does nothing, at most; default 0.05", parse_alpha,
                options->rule.alpha);
    add_setting(command, "--tolerance", "Cost increase that is tolerated, such as 5%; default 0%",
                parse_percentage, options->tolerance);
    add_setting(command, "--max-pairs", "Pairs after which a comparison is undecided; default 64",
                parse_count<unsigned, kMaxPairs>, options->rule.max_pairs);
    add_setting(command, "--candidates", "How many candidates are compared with the reference; default 1",
                parse_count<unsigned, kMaxCandidates>, options->rule.candidates);
    auto* watch =
        command.add_flag("--watch", options->watch, "Print the pair at which the watch would alarm");
    add_setting(command, "--run-length", "Pairs before a false alarm, on average at least; default 20000",
                parse_count<std::uint64_t, kMaxRunLength>, options->rule.run_length)
        ->needs(watch);
    return [options] { return judge(*options); };
}

}  // namespace wq::ctl
