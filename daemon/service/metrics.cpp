// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace wq {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// As it stands between the quotes of a label.
std::string label_value(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        if (length == 0)
            out += "\uFFFD";
        else if (text[at] == '\n')
            out += "\\n";
        else if (text[at] == '"' || text[at] == '\\')
            out += fmt::format("\\{}", text[at]);
        else
            out += text.substr(at, length);
        at += std::max<std::size_t>(length, 1);
    }
    return out;
}

std::string text_of(const Labels& labels) {
    std::string out;
    for (const auto& [name, value] : labels)
        out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", name, label_value(value));
    return out.empty() ? "" : "{" + out + "}";
}

std::string text_of(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
}

// Writes metric by metric. One without samples leaves no trace.
class Exposition {
  public:
    void gauge(const char* name, const char* help) { begin(name, "gauge", help); }
    void counter(const char* name, const char* help) { begin(name, "counter", help); }

    // A second sample of the same labels (names that differ in bytes which are not UTF-8) would make
    // node_exporter refuse the whole file: the first stays.
    void sample(const Labels& labels, double value) {
        const std::string series = name_ + text_of(labels);
        if (!series_.insert(series).second) return;
        out_ += std::exchange(head_, "") + fmt::format("{} {}\n", series, text_of(value));
    }
    void sample(double value) { sample({}, value); }
    // One sample for each word of WORDS, 1 where it is NOW.
    template <class Words>
    void choice(const char* label, const Words& words, std::string_view now) {
        for (const std::string_view word : words) sample({{label, std::string(word)}}, word == now ? 1 : 0);
    }

    std::string text() && { return std::move(out_); }

  private:
    void begin(const char* name, const char* type, const char* help) {
        name_ = name;
        head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
        series_.clear();
    }

    std::string out_;
    std::string name_;
    std::string head_;
    std::set<std::string> series_;
};

double number(std::uint64_t count) {
    return static_cast<double>(count);
}

void add_daemon(Exposition& out, const MetricsInput& in) {
    constexpr std::string_view kStates[] = {"running", "paused", "observing"};
    constexpr Mode kModes[] = {Mode::observe, Mode::guard, Mode::tune};
    out.gauge("wq_tuned_build_info", "The version of wq-tuned that runs; always 1.");
    out.sample({{"version", version()}}, 1);
    out.gauge("wq_tuned_start_time_seconds", "When the daemon started, since 1970.");
    out.sample(static_cast<double>(in.started));
    out.gauge("wq_tuned_state", "1 for the state of the daemon, 0 for the others.");
    out.choice("state", kStates, in.state);
    out.gauge("wq_tuned_mode", "1 for the mode of the policy in use, 0 for the others.");
    for (const Mode mode : kModes)
        out.sample({{"mode", std::string(name_of(mode))}}, in.tuner.policy().mode == mode ? 1 : 0);
}

void add_policy(Exposition& out, const PolicyFacts& policy) {
    out.gauge("wq_tuned_policy_info",
              "The policy in use: a hash of what it says here, and one of its files; always 1.");
    if (!policy.hash.empty()) out.sample({{"hash", policy.hash}, {"sources", policy.sources}}, 1);
    out.gauge("wq_tuned_policy_files", "Files that the policy in use came of.");
    out.sample(number(policy.files));
    out.gauge("wq_tuned_policy_broken", "1 if the policy on disk could not be read when it was last tried.");
    out.sample(policy.broken ? 1 : 0);
}

// The states in which a target is named: what is ours, or wants somebody's eye. What wants it most is first.
constexpr State kNamed[] = {State::quarantined, State::unsupported, State::external, State::trial,
                            State::reverted,    State::pinned,      State::kept,     State::applied};

void add_targets(Exposition& out, const Tuner& tuner) {
    std::map<State, std::vector<std::string>> names;
    for (const auto& [name, target] : tuner.targets()) names[target.state].push_back(name);
    out.gauge("wq_tuned_targets", "Targets in each state.");
    for (const State state : kAllStates)
        out.sample({{"state", std::string(name_of(state))}}, number(names[state].size()));
    out.gauge("wq_tuned_target_state", "The state of a target that wq-tuned has a hand in, or cannot have.");
    std::size_t named = 0;
    std::size_t unnamed = 0;
    for (const State state : kNamed)
        for (const std::string& name : names[state])
            if (named++ < kMostTargetSeries)
                out.sample({{"target", name}, {"state", std::string(name_of(state))}}, 1);
            else
                unnamed++;
    out.gauge("wq_tuned_targets_unnamed", "Targets that wq_tuned_target_state leaves out, being too many.");
    out.sample(number(unnamed));
}

void add_writes(Exposition& out, const MetricsInput& in) {
    out.counter("wq_tuned_writes_total", "Writes to the kernel's files, those of trials included.");
    out.sample(in.tuner.writes());
    out.counter("wq_tuned_write_errors_total", "Tries to set a target, or to put it back, that failed.");
    out.sample(in.tuner.write_errors());
    out.counter("wq_tuned_reverts_total",
                "Candidates that did not stay after a verdict, and settings that an order took back.");
    out.sample({{"by", "verdict"}}, number(in.trials.totals().taken_back));
    out.sample({{"by", "order"}}, in.tuner.order_reverts());
}

void add_trials(Exposition& out, const TrialTotals& totals) {
    out.counter("wq_tuned_trials_begun_total", "Trials that began.");
    out.sample(number(totals.begun));
    out.counter("wq_tuned_trials_cut_off_total", "Trials that ended without a verdict.");
    out.sample(number(totals.cut_off));
    out.counter("wq_tuned_verdicts_total", "Trials that ended with a verdict.");
    out.sample({{"outcome", "regressed"}}, number(totals.regressed));
    out.sample({{"outcome", "improved"}}, number(totals.improved));
    out.sample({{"outcome", "inconclusive"}}, number(totals.inconclusive));
    out.counter("wq_tuned_pairs_total", "Pairs of windows that were measured.");
    out.sample({{"result", "used"}}, number(totals.pairs_used));
    out.sample({{"result", "dropped"}}, number(totals.pairs_dropped));
}

void add_running_trial(Exposition& out, const Trials& trials) {
    out.gauge("wq_tuned_trial_running", "1 while a target is on trial.");
    out.sample(trials.running() != nullptr ? 1 : 0);
    out.gauge("wq_tuned_trials_parked", "Trials that began and wait, for traffic or for their hours.");
    out.sample(number(trials.parked()));
    if (trials.running() == nullptr) return;
    const auto progress = trials.progress_of(*trials.running());
    out.gauge("wq_tuned_trial_info", "The trial that runs; always 1.");
    out.sample({{"target", *trials.running()},
                {"baseline", progress->arms.baseline.name()},
                {"candidate", progress->arms.candidate.name()}},
               1);
    out.gauge("wq_tuned_trial_start_time_seconds",
              "When the trial that runs began, or was taken up again, since 1970.");
    out.sample(static_cast<double>(progress->since));
    out.gauge("wq_tuned_trial_planned_seconds", "How long all pairs of the trial that runs take.");
    out.sample(std::chrono::duration<double>(progress->most).count());
    out.gauge("wq_tuned_trial_evidence", "Evidence of the trial that runs; 1 says nothing.");
    out.sample({{"of", "regressed"}}, evidence_of(progress->standing.log_regressed));
    out.sample({{"of", "improved"}}, evidence_of(progress->standing.log_improved));
}

// The last verdict of each class and pair of arms, on this kernel and topology: the newest ones, oldest
// first.
std::vector<const VerdictRecord*> last_verdicts(const MetricsInput& in) {
    std::set<std::string> seen;
    std::vector<const VerdictRecord*> out;
    const auto& records = in.verdicts.records();
    for (auto r = records.rbegin(); r != records.rend() && out.size() < kMostVerdictSeries; ++r) {
        const VerdictKey& key = r->key;
        if (!r->judged || key.kernel != in.tuner.kernel().release || key.topology != in.tuner.topology())
            continue;
        if (seen.insert(label_value(fmt::format("{}\n{}\n{}", key.kind, key.baseline, key.candidate))).second)
            out.push_back(&*r);
    }
    std::reverse(out.begin(), out.end());
    return out;
}

Labels arms_of(const VerdictRecord& record) {
    return {
        {"class", record.key.kind}, {"baseline", record.key.baseline}, {"candidate", record.key.candidate}};
}

Labels with(Labels labels, const char* name, const std::string& value) {
    labels.emplace_back(name, value);
    return labels;
}

void add_verdicts(Exposition& out, const MetricsInput& in) {
    const auto verdicts = last_verdicts(in);
    const auto ratio = [](double percent) { return 1 + percent / 100; };
    out.gauge("wq_tuned_verdict_info", "The last verdict on a class of targets; always 1.");
    for (const auto* v : verdicts)
        out.sample(with(arms_of(*v), "outcome", std::string(name_of(v->outcome))), 1);
    out.gauge("wq_tuned_verdict_timestamp_seconds", "When the last verdict was reached, since 1970.");
    for (const auto* v : verdicts) out.sample(arms_of(*v), static_cast<double>(v->time));
    out.gauge(
        "wq_tuned_effect_ratio",
        "Cost under the candidate over that under the baseline, as of the last verdict; above 1 is worse.");
    for (const auto* v : verdicts)
        if (v->standing.pairs > 0)
            out.sample(with(arms_of(*v), "counter", v->standing.counter), ratio(v->standing.effect.percent));
    out.gauge("wq_tuned_effect_lower_ratio", "Lower end of the interval of wq_tuned_effect_ratio.");
    for (const auto* v : verdicts)
        if (const auto& interval = v->standing.effect.interval)
            out.sample(with(arms_of(*v), "counter", v->standing.counter), ratio(interval->low));
    out.gauge("wq_tuned_effect_upper_ratio", "Upper end of the interval of wq_tuned_effect_ratio.");
    for (const auto* v : verdicts)
        if (const auto& interval = v->standing.effect.interval)
            out.sample(with(arms_of(*v), "counter", v->standing.counter), ratio(interval->high));
}

}  // namespace

std::string metrics_text(const MetricsInput& in) {
    Exposition out;
    add_daemon(out, in);
    add_policy(out, in.policy);
    add_targets(out, in.tuner);
    add_writes(out, in);
    add_trials(out, in.trials.totals());
    add_running_trial(out, in.trials);
    add_verdicts(out, in);
    return std::move(out).text();
}

}  // namespace wq
