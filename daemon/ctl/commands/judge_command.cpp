// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/judge_command.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/file.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/render/verdict_text.h"
#include "ctl/setting_option.h"
#include "judge/recording.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMaxRecording = 64U << 20U;  // bytes

TrialVerdict judge_one(const RecordedTrial& recorded, const JudgeSettings& settings) {
    Trial trial(settings, recorded.counters);
    for (const WindowPair& pair : recorded.pairs)
        if (auto verdict = trial.add(pair)) return *verdict;
    return trial.end("no more pairs");
}

void print_json(const RecordedTrial& recorded, const TrialVerdict& verdict) {
    const Standing& at = verdict.standing;
    nlohmann::ordered_json line{{"trial", recorded.name},
                                {"verdict", name_of(verdict.outcome)},
                                {"counter", at.counter},
                                {"pairs", at.pairs},
                                {"e_regressed", evidence_of(at.log_regressed)},
                                {"e_improved", evidence_of(at.log_improved)},
                                {"effect_percent", at.effect.percent},
                                {"interval_percent", nullptr}};
    if (const auto& interval = at.effect.interval) line["interval_percent"] = {interval->low, interval->high};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<std::string> row_of(const RecordedTrial& recorded, const TrialVerdict& verdict) {
    const Standing& at = verdict.standing;
    return {recorded.name,
            verdict_text(verdict),
            at.counter,
            std::to_string(at.pairs),
            fmt::format("{:.4g}", evidence_of(at.log_regressed)),
            fmt::format("{:.4g}", evidence_of(at.log_improved)),
            effect_text(at.effect)};
}

// A pipe is waited for, as cat does.
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
    Table table({"TRIAL", "VERDICT", "COUNTER", "PAIRS", "E WORSE", "E BETTER", "EFFECT"});
    for (const RecordedTrial& trial : *trials) {
        const TrialVerdict verdict = judge_one(trial, options.settings);
        if (options.json)
            print_json(trial, verdict);
        else
            table.add(row_of(trial, verdict));
    }
    if (!options.json) fmt::print("{}", table.text(terminal_columns(), wants_colour()));
    return kOk;
}

CommandRun set_up_judge(CLI::App& command, const Invocation& /*invocation*/) {
    const auto options = std::make_shared<JudgeOptions>();
    JudgeSettings& settings = options->settings;
    command.add_option("FILE", options->file, "CSV: trial,pair,arm,counter,value")
        ->type_name(word::kFile)
        ->required()
        ->check(not_empty);
    command.add_flag("--json", options->json, "For machines");
    add_setting(command, "--alpha", "Chance of reverting a harmless change, at most; 0.05", parse_alpha,
                settings.alpha);
    add_setting(command, "--tolerance", "What a change may cost, as in 5%; 0%", parse_tolerance,
                settings.tolerance);
    add_setting(command, "--max-pairs", "Pairs before a trial is given up; 16", parse_max_pairs,
                settings.max_pairs);
    return [options] { return judge(*options); };
}

}  // namespace wq::ctl
