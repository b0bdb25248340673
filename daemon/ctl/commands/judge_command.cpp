// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/judge_command.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/comparison.h"
#include "evidence/e_process.h"
#include "evidence/recording.h"
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

Answer judge_one(const RecordedComparison& recorded, const JudgeOptions& options) {
    std::vector<ComparedCounter> counters = recorded.counters;
    for (ComparedCounter& counter : counters) counter.tolerance = options.tolerance;
    Comparison comparison(counters);
    Decision at;
    for (const auto& pair : recorded.pairs) {
        comparison.add(std::vector<std::optional<PairValues>>(pair.begin(), pair.end()));
        at = comparison.decide({options.alpha, options.candidates});
        if (at.judgement != Judgement::undecided || at.pairs >= options.max_pairs) break;
    }
    const Effect effect = comparison.effect(at.column);
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

// LN M: the highest value of all counters' e-detectors, at the end.
Answer watch_one(const RecordedComparison& recorded, const JudgeOptions& options) {
    std::vector<EDetector> detectors(recorded.counters.size());
    const double enough =
        std::log(static_cast<double>(detectors.size()) * static_cast<double>(options.run_length));
    std::optional<std::size_t> alarm_at;  // pair, from 1
    double log_m = 0;
    for (std::size_t p = 0; p < recorded.pairs.size() && !alarm_at; p++) {
        log_m = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < detectors.size(); i++) {
            const PairValues& r = recorded.pairs[p][i];
            detectors[i].add(log_ratio(recorded.counters[i], r) - std::log1p(options.tolerance));
            log_m = std::max(log_m, detectors[i].log());
        }
        if (log_m >= enough) alarm_at = p + 1;
    }
    return {{{"trial", recorded.name}, {"alarm_at", or_null(alarm_at)}, {"log_m", log_m}},
            {recorded.name, alarm_at ? std::to_string(*alarm_at) : "-", fmt::format("{:.4g}", log_m)}};
}

// Opening a pipe blocks until there is a writer, as in cat(1).
Result<std::string> read_recording_file(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail_errno(path, errno);
    return read_all(fd.get(), kMaxRecording).map_error([&](const Error& e) { return e.in(path); });
}

}  // namespace

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
        const Answer answer = options.watch ? watch_one(trial, options) : judge_one(trial, options);
        if (options.json)
            fmt::print("{}\n", json_text(answer.line));
        else
            table.add(answer.row);
    }
    if (!options.json) table.print();
    return kOk;
}

CommandRun set_up_judge(CLI::App& command, const Invocation& /*invocation*/) {
    const auto options = std::make_shared<JudgeOptions>();
    command.add_option("FILE", options->file, "CSV: trial,pair,arm,counter,value")
        ->type_name(word::kFile)
        ->required()
        ->check(not_empty);
    command.add_flag("--json", options->json, kJsonHelp);
    add_setting(command, "--alpha",
                "Chance of a verdict on a change that does nothing, at most; default 0.05", parse_alpha_word,
                options->alpha);
    add_setting(command, "--tolerance", "Cost increase that is tolerated, such as 5%; default 0%",
                parse_tolerance, options->tolerance);
    add_setting(command, "--max-pairs", "Pairs after which a comparison is undecided; default 64",
                parse_max_pairs, options->max_pairs);
    add_setting(command, "--candidates", "How many candidates are compared with the reference; default 1",
                parse_candidates, options->candidates);
    auto* watch =
        command.add_flag("--watch", options->watch, "Print the pair at which the watch would alarm");
    add_setting(command, "--run-length", "Pairs before a false alarm, on average at least; default 20000",
                parse_run_length, options->run_length)
        ->needs(watch);
    return [options] { return judge(*options); };
}

}  // namespace wq::ctl
