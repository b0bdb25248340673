// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics.h"

#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "service/status.h"

namespace wq {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// Escapes TEXT for the value of a label.
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

Labels with(Labels labels, const char* name, const std::string& value) {
    labels.emplace_back(name, value);
    return labels;
}

// Writes one metric after the other. A metric without samples is omitted.
class Exposition {
  public:
    // Begins a metric. Those of the type `counter` are the ones whose names end with _total.
    void metric(const char* name, const char* help) {
        name_ = name;
        const char* type = std::string_view(name).ends_with("_total") ? "counter" : "gauge";
        head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
        series_.clear();
    }
    // Drops a second sample with the same labels (names may differ only in bytes that are not UTF-8):
    // node_exporter would reject the whole file.
    template <class Number>
    void sample(const Labels& labels, Number value) {
        const std::string series = name_ + text_of(labels);
        if (!series_.insert(series).second) return;
        out_ += std::exchange(head_, "") + fmt::format("{} {}\n", series, static_cast<double>(value));
    }
    // A metric with one sample, which has no labels.
    template <class Number>
    void metric(const char* name, const char* help, Number value) {
        metric(name, help);
        sample({}, value);
    }
    // Writes one sample for each of WORDS: 1 for NOW, 0 for the others.
    void choice(const char* label, std::initializer_list<std::string_view> words, std::string_view now) {
        for (const std::string_view word : words) sample({{label, std::string(word)}}, word == now ? 1 : 0);
    }

    std::string text() && { return std::move(out_); }

  private:
    std::string out_;
    std::string name_;
    std::string head_;
    std::set<std::string> series_;
};

void add_daemon(Exposition& out, const MetricsInput& in) {
    out.metric("wq_tuned_build_info", "The version of wq-tuned that runs; always 1.");
    out.sample({{"version", version()}}, 1);
    out.metric("wq_tuned_start_time_seconds", "When the daemon started, since 1970.", in.started);
    out.metric("wq_tuned_state", "1 for the state of the daemon, 0 for the others.");
    out.choice("state", {"running", "paused", "observing"}, in.state);
    out.metric("wq_tuned_mode", "1 for the mode of the policy in use, 0 for the others.");
    out.choice("mode", {name_of(Mode::observe), name_of(Mode::tune)},
               name_of(in.engine.targets().policy().mode));
}

void add_policy(Exposition& out, const PolicyFacts& policy) {
    out.metric("wq_tuned_policy_info", "Hash of the policy on this host, and hash of its files; always 1.");
    if (!policy.hash.empty()) out.sample({{"hash", policy.hash}, {"sources", policy.sources}}, 1);
    out.metric("wq_tuned_policy_files", "Number of files of the policy in use.", policy.files);
    out.metric("wq_tuned_policy_broken", "1 if the policy on disk was broken when it was last read.",
               policy.broken);
    out.metric("wq_tuned_policy_expired_rules", "Rules of the policy in use that have expired.",
               policy.expired);
}

// The states in which a target gets a series of its own: we changed it, or an administrator should look at
// it. The most important state is first.
constexpr State kNamed[] = {State::quarantined, State::unsupported, State::external, State::comparing,
                            State::reverted,    State::pinned,      State::kept,     State::set};

void add_targets(Exposition& out, const Targets& targets) {
    std::map<State, std::vector<std::string>> names;
    for (const auto& [name, target] : targets.all()) names[target.state].push_back(name);
    out.metric("wq_tuned_targets", "Targets in each state.");
    for (std::size_t i = 0; i < std::size(kStateNames); i++)
        out.sample({{"state", std::string(kStateNames[i])}}, names[static_cast<State>(i)].size());
    out.metric("wq_tuned_target_state",
               "1 for the state of each target that wq-tuned changed, compares or cannot set.");
    std::size_t named = 0;
    for (const State state : kNamed)
        for (const std::string& name : names[state])
            if (named++ < kMostTargetSeries)
                out.sample({{"target", name}, {"state", std::string(name_of(state))}}, 1);
    out.metric("wq_tuned_targets_unnamed",
               "Targets omitted from wq_tuned_target_state because there are too many.",
               named - std::min(named, kMostTargetSeries));
}

void add_writes(Exposition& out, const MetricsInput& in) {
    const Reconciler::Counts& counts = in.engine.reconciler().counts();
    out.metric("wq_tuned_writes_total", "Writes to the kernel's files, those of experiments included.",
               in.engine.targets().edges().files.writes());
    out.metric("wq_tuned_write_seconds_total",
               "Time that writes of scopes took, with the reads before and after each.",
               static_cast<double>(counts.time) / 1e6);
    out.metric("wq_tuned_write_errors_total", "Tries to set a target, or to put it back, that failed.",
               counts.errors);
    out.metric("wq_tuned_reverts_total", "Settings that were taken back, by the watch or by an order.");
    out.sample({{"by", "watch"}}, in.experiment.totals().taken_back);
    out.sample({{"by", "order"}}, in.orders.reverts());
}

void add_experiments(Exposition& out, const ExperimentTotals& totals) {
    out.metric("wq_tuned_slots_total", "Slots in which pairs of windows were measured.", totals.slots);
    out.metric("wq_tuned_pairs_total", "Pairs of windows that were measured.");
    out.sample({{"result", "used"}}, totals.pairs);
    out.sample({{"result", "dropped"}}, totals.pairs_dropped);
    out.metric("wq_tuned_windows_lost_total",
               "Windows that were empty, late or cut off; each counts against its arm.", totals.windows_lost);
    out.metric("wq_tuned_cut_off_total", "Targets that left a slot before its end.", totals.cut_off);
    out.metric("wq_tuned_rests_total", "Candidates that began to rest.", totals.rests);
    out.metric("wq_tuned_verdicts_total", "Verdicts on comparisons, those of the watch included.");
    out.sample({{"outcome", "regressed"}}, totals.regressed);
    out.sample({{"outcome", "improved"}}, totals.improved);
    out.sample({{"outcome", "undecided"}}, totals.undecided);
}

struct ArmRow {
    Labels labels;
    ArmWork work;
};

// What is not seen has no series.
template <class T>
void add_arms(Exposition& out, const std::vector<ArmRow>& arms, const char* name, const char* help,
              std::optional<T> ArmWork::*value, double unit = 1) {
    out.metric(name, help);
    for (const auto& [labels, work] : arms)
        if (work.*value) out.sample(labels, *(work.*value) * unit);
}

void add_contention(Exposition& out, const std::vector<ArmRow>& arms) {
    add_arms(out, arms, "wq_tuned_lock_wait_seconds",
             "Wait of an item for the lock of its pool, above the lowest that was seen on this host.",
             &ArmWork::lock_ns, 1e-9);
    add_arms(out, arms, "wq_tuned_contention_ratio", "That wait as a share of latency.",
             &ArmWork::lock_percent, 0.01);
    add_arms(out, arms, "wq_tuned_pools", "Worker pools of a target under an arm.", &ArmWork::pools);
    add_arms(out, arms, "wq_tuned_workers", "kworkers of these pools.", &ArmWork::workers);
}

void add_running(Exposition& out, const MetricsInput& in) {
    std::map<Course, std::size_t> courses;
    std::size_t measured = 0;
    std::vector<ArmRow> arms;
    for (const auto& [name, target] : in.engine.targets().all()) {
        const auto view = in.experiment.view_of(name);
        if (!view) continue;
        courses[view->course]++;
        measured += view->measuring ? 1 : 0;
        if (!view->contention || arms.size() >= 2 * kMostTargetSeries) continue;
        const auto& [reference, candidate] = *view->contention;
        arms.push_back(
            {{{"target", name}, {"arm", "reference"}, {"scope", view->arms.reference.name()}}, reference});
        arms.push_back(
            {{{"target", name}, {"arm", "candidate"}, {"scope", view->arms.candidate.name()}}, candidate});
    }
    out.metric("wq_tuned_comparisons", "Targets with a comparison, by its course.");
    for (const Course course : {Course::dense, Course::sparse, Course::resting, Course::watched})
        out.sample({{"course", std::string(name_of(course))}}, courses[course]);
    out.metric("wq_tuned_targets_measured", "Targets in the slot that runs.", measured);
    out.metric("wq_tuned_lost_seconds_today", "Time that all targets lost to experiments today (UTC).",
               in.experiment.totals().lost_today);
    add_contention(out, arms);
}

struct HealthMetric {
    const char* name;
    const char* help;
    Health::Count count;
};
constexpr HealthMetric kHealthMetrics[] = {
    {"wq_tuned_workqueue_started_total", "Items of an unbound workqueue that started.", Health::started},
    {"wq_tuned_workqueue_completed_total", "Items of an unbound workqueue that ended.", Health::completed},
    {"wq_tuned_workqueue_repatriated_total", "Workers that were brought back into their scope.",
     Health::repatriated},
    {"wq_tuned_workqueue_maydays_total", "Calls for the rescuer, since no worker could be made in time.",
     Health::maydays},
    {"wq_tuned_workqueue_rescued_total", "Items that the rescuer ran.", Health::rescued},
};

void add_health(Exposition& out, const Health& health) {
    if (!health.has_looked) return;
    std::vector<std::pair<Labels, const Health::Row&>> rows;
    for (const auto& [name, row] : health.rows) rows.push_back({{{"workqueue", name}}, row});
    if (health.unnamed > 0) rows.push_back({{{"workqueue", Health::kOthers}}, health.others});
    for (const HealthMetric& metric : kHealthMetrics) {
        out.metric(metric.name, metric.help);
        const bool of_rescuer = metric.count == Health::maydays || metric.count == Health::rescued;
        for (const auto& [labels, row] : rows)
            if (row.rescuer || !of_rescuer) out.sample(labels, row.counts[metric.count]);
    }
    out.metric("wq_tuned_workqueue_in_flight", "Items that were queued or running at the last look.");
    for (const auto& [labels, row] : rows) out.sample(labels, row.in_flight);
    out.metric("wq_tuned_workqueue_stalled_seconds",
               "For how long at least there have been items in flight, none of which ended.");
    for (const auto& [labels, row] : rows) out.sample(labels, static_cast<double>(row.stalled) / 1e6);
    out.metric("wq_tuned_workqueues_unnamed", "Unbound workqueues that are not named, but added up.",
               health.unnamed);
    out.metric("wq_tuned_cpu_hogs_total",
               "Items of a per-CPU workqueue that held a CPU beyond the kernel's threshold.");
    for (const auto& [name, items] : health.hogs) out.sample({{"workqueue", name}}, items);
}

// Returns the comparisons of this kernel and topology with the latest pairs, newest first.
std::vector<const LedgerEntry*> newest_comparisons(const MetricsInput& in) {
    const std::string kernel = kernel_key(in.engine.targets().kernel());
    std::vector<const LedgerEntry*> out;
    for (const auto& [text, entry] : in.experiment.ledger().entries())
        if (entry.key.kernel == kernel && entry.key.topology == in.engine.targets().snapshot().fingerprint)
            out.push_back(&entry);
    std::ranges::stable_sort(out, std::ranges::greater{}, &LedgerEntry::updated);
    if (out.size() > kMostComparisons) out.resize(kMostComparisons);
    return out;
}

// The kind of the machine and the kernel. `fleet show` prints a table for each combination of them.
Labels machine_labels(const MetricsInput& in) {
    const auto count = [](const std::optional<std::uint64_t>& n) { return n ? fmt::format("{}", *n) : ""; };
    const FleetMachine& m = in.machine;
    return {{"arch", m.arch},
            {"vendor", m.vendor},
            {"model", m.model},
            {"packages", count(m.packages)},
            {"cores", count(m.cores)},
            {"llc_cores", count(m.llc_cores)},
            {"kernel", kernel_key(in.engine.targets().kernel())}};
}

// Each series has a hash of the labels of wq_tuned_machine_info: its meaning outlives other CPUs or kernels.
void add_evidence(Exposition& out, const MetricsInput& in) {
    Labels info = machine_labels(in);
    const std::string machine = fmt::format("{:016x}", hash_of(text_of(info)));
    info.insert(info.begin(), {"machine", machine});
    out.metric("wq_tuned_machine_info", "The kind of this machine, and a hash of it; always 1.");
    out.sample(info, 1);
    struct Row {
        Labels labels;
        const Comparison::Column& column;
    };
    std::vector<Row> rows;
    for (const LedgerEntry* entry : newest_comparisons(in))
        for (const Comparison::Column& column : entry->columns)
            rows.push_back({{{"machine", machine},
                             {"class", entry->key.kind},
                             {"reference", entry->key.reference},
                             {"reference_origin", entry->key.reference_origin},
                             {"candidate", entry->key.candidate},
                             {"counter", column.counter.name}},
                            column});
    out.metric("wq_tuned_comparison_pairs", "Pairs of windows of a comparison, by counter.");
    for (const auto& [labels, column] : rows) out.sample(labels, column.worse.count);
    out.metric("wq_tuned_comparison_effect_log",
               "ln of the cost under the candidate over that under the reference, mean over all pairs.");
    for (const auto& [labels, column] : rows)
        if (column.worse.count > 0) out.sample(labels, column.sum / static_cast<double>(column.worse.count));
    out.metric("wq_tuned_evidence_log", "ln of the e-value of a comparison, by direction and stake.");
    for (const auto& [labels, column] : rows)
        for (const auto& [direction, state] : {std::pair("better", &column.better), {"worse", &column.worse}})
            for (std::size_t k = 0; k < kStakes.size(); k++)
                out.sample(with(with(labels, "direction", direction), "stake", fmt::format("{}", kStakes[k])),
                           state->logs[k]);
}

// The last verdict of each class and pair of arms on this kernel and topology, the newest ones, oldest first.
std::vector<const VerdictRecord*> last_verdicts(const MetricsInput& in) {
    const std::string kernel = kernel_key(in.engine.targets().kernel());
    std::set<std::string> seen;
    std::vector<const VerdictRecord*> out;
    const auto& records = in.verdicts.records();
    for (auto r = records.rbegin(); r != records.rend() && out.size() < kMostVerdictSeries; ++r) {
        const LedgerKey& key = r->key;
        if (!r->judged || key.kernel != kernel || key.topology != in.engine.targets().snapshot().fingerprint)
            continue;
        if (seen.insert(label_value(fmt::format("{}\n{}\n{}", key.kind, key.reference, key.candidate)))
                .second)
            out.push_back(&*r);
    }
    std::reverse(out.begin(), out.end());
    return out;
}

void add_verdicts(Exposition& out, const MetricsInput& in) {
    struct Row {
        const VerdictRecord& verdict;
        Labels arms;
        Labels counter;  // with that of the effect
    };
    std::vector<Row> rows;
    for (const VerdictRecord* v : last_verdicts(in)) {
        const Labels arms = {
            {"class", v->key.kind}, {"reference", v->key.reference}, {"candidate", v->key.candidate}};
        rows.push_back({*v, arms, with(arms, "counter", v->standing.counter)});
    }
    out.metric("wq_tuned_verdict_info", "The last verdict on a class of targets; always 1.");
    for (const Row& row : rows)
        out.sample(with(row.arms, "outcome", std::string(name_of(row.verdict.outcome))), 1);
    out.metric("wq_tuned_verdict_timestamp_seconds", "When the last verdict was reached, since 1970.");
    for (const Row& row : rows) out.sample(row.arms, row.verdict.time);
    const auto ratio = [&out](const Row& row, double percent) { out.sample(row.counter, 1 + percent / 100); };
    out.metric(
        "wq_tuned_effect_ratio",
        "Cost under the candidate over that under the reference, as of the last verdict; above 1 is worse.");
    for (const Row& row : rows)
        if (row.verdict.standing.pairs > 0) ratio(row, row.verdict.standing.effect.percent);
    out.metric("wq_tuned_effect_lower_ratio", "Lower end of the interval of wq_tuned_effect_ratio.");
    for (const Row& row : rows)
        if (const auto& interval = row.verdict.standing.effect.interval) ratio(row, interval->low);
    out.metric("wq_tuned_effect_upper_ratio", "Upper end of the interval of wq_tuned_effect_ratio.");
    for (const Row& row : rows)
        if (const auto& interval = row.verdict.standing.effect.interval) ratio(row, interval->high);
}

void add_worth(Exposition& out, const MetricsInput& in) {
    const Worth worth = worth_of(in.engine.targets(), in.experiment.ledger());
    const std::span parts(worth.parts.data(), std::min(worth.parts.size(), kMostVerdictSeries));
    const auto labels = [](const Worth::Part& part) {
        return Labels{{"class", part.kind}, {"scope", part.arm}, {"counter", part.counter}};
    };
    out.metric("wq_tuned_targets_moved", "Targets on another scope than the kernel's because of wq-tuned.",
               worth.moved);
    out.metric("wq_tuned_worth_pairs",
               "Pairs that compared a scope in force with the kernel's, and did not bring it there.");
    for (const Worth::Part& part : parts) out.sample(labels(part), part.after.pairs);
    out.metric(
        "wq_tuned_worth_ratio",
        "Mean cost on a scope in force over that on the kernel's, from these pairs; above 1 is worse.");
    for (const Worth::Part& part : parts)
        if (part.is_measured()) out.sample(labels(part), 1 + mean_effect_of(part.after).percent / 100);
}

}  // namespace

std::string metrics_text(const MetricsInput& in) {
    Exposition out;
    add_daemon(out, in);
    add_policy(out, in.policy);
    add_targets(out, in.engine.targets());
    add_writes(out, in);
    add_experiments(out, in.experiment.totals());
    add_running(out, in);
    add_health(out, in.health);
    add_evidence(out, in);
    add_verdicts(out, in);
    add_worth(out, in);
    return std::move(out).text();
}

}  // namespace wq
