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
#include "policy/judge_settings.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMaxRecording = 64U << 20U;  // bytes

struct Judged {
    Decision decision;
    Effect effect;
};

Judged judge_one(const RecordedComparison& recorded, const JudgeOptions& options) {
    std::vector<ComparedCounter> counters = recorded.counters;
    for (ComparedCounter& counter : counters) counter.tolerance = options.tolerance;
    Comparison comparison(counters);
    const DecisionRule rule{options.alpha, options.candidates};
    Decision decision;
    for (const auto& pair : recorded.pairs) {
        comparison.add(std::vector<std::optional<PairValues>>(pair.begin(), pair.end()));
        decision = comparison.decide(rule);
        if (decision.judgement != Judgement::undecided || decision.pairs >= options.max_pairs) break;
    }
    return {decision, comparison.effect(decision.column)};
}

void print_line(const nlohmann::ordered_json& line) {
    fmt::print("{}\n", json_text(line));
}

void print_json(const RecordedComparison& recorded, const Judged& judged) {
    const Decision& at = judged.decision;
    print_line({{"trial", recorded.name},
                {"verdict", name_of(at.judgement)},
                {"counter", at.counter},
                {"pairs", at.pairs},
                {"e_regressed", evidence_of(at.log_worse)},
                {"e_improved", evidence_of(at.log_better)},
                {"effect_percent", judged.effect.percent},
                {"interval_percent", interval_or_null(judged.effect)}});
}

std::vector<std::string> row_of(const RecordedComparison& recorded, const Judged& judged) {
    const Decision& at = judged.decision;
    return {recorded.name,
            std::string(name_of(at.judgement)),
            at.counter,
            std::to_string(at.pairs),
            fmt::format("{:.4g}", evidence_of(at.log_worse)),
            fmt::format("{:.4g}", evidence_of(at.log_better)),
            effect_text(judged.effect)};
}

struct Watched {
    std::optional<std::size_t> alarm_at;  // pair, from 1
    double log_m = 0;                     // highest value of all counters, at the end
};

Watched watch_one(const RecordedComparison& recorded, const JudgeOptions& options) {
    std::vector<EDetector> detectors(recorded.counters.size());
    const double enough =
        std::log(static_cast<double>(detectors.size()) * static_cast<double>(options.run_length));
    Watched out;
    for (std::size_t p = 0; p < recorded.pairs.size() && !out.alarm_at; p++) {
        out.log_m = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < detectors.size(); i++) {
            const PairValues& r = recorded.pairs[p][i];
            detectors[i].add(log_ratio(recorded.counters[i], r) - std::log1p(options.tolerance));
            out.log_m = std::max(out.log_m, detectors[i].log());
        }
        if (out.log_m >= enough) out.alarm_at = p + 1;
    }
    return out;
}

void show_watched(const std::vector<RecordedComparison>& trials, const JudgeOptions& options) {
    Table table({"COMPARISON", "ALARM AT PAIR", "LN M"});
    for (const RecordedComparison& trial : trials) {
        const Watched watched = watch_one(trial, options);
        if (options.json)
            print_line(
                {{"trial", trial.name}, {"alarm_at", or_null(watched.alarm_at)}, {"log_m", watched.log_m}});
        else
            table.add({trial.name, watched.alarm_at ? std::to_string(*watched.alarm_at) : "-",
                       fmt::format("{:.4g}", watched.log_m)});
    }
    if (!options.json) fmt::print("{}", table.text(terminal_columns(), wants_colour()));
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
    if (options.watch) {
        show_watched(*trials, options);
        return kOk;
    }
    Table table({"COMPARISON", "VERDICT", "COUNTER", "PAIRS", "E WORSE", "E BETTER", "EFFECT"});
    for (const RecordedComparison& trial : *trials) {
        const Judged judged = judge_one(trial, options);
        if (options.json)
            print_json(trial, judged);
        else
            table.add(row_of(trial, judged));
    }
    if (!options.json) fmt::print("{}", table.text(terminal_columns(), wants_colour()));
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
