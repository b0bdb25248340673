// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics.h"

#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"
#include "machine/bpf_errors.h"
#include "machine/isolation.h"

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

std::string text_of(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
}

// Writes one metric after the other. A metric without samples is omitted.
class Exposition {
  public:
    void gauge(const char* name, const char* help) { begin(name, "gauge", help); }
    void counter(const char* name, const char* help) { begin(name, "counter", help); }

    // Drops a second sample with the same labels, because node_exporter would reject the whole file. (Two
    // names may differ only in bytes that are not UTF-8.)
    void sample(const Labels& labels, double value) {
        const std::string series = name_ + text_of(labels);
        if (!series_.insert(series).second) return;
        out_ += std::exchange(head_, "") + fmt::format("{} {}\n", series, text_of(value));
    }
    void sample(double value) { sample({}, value); }
    // Writes one sample for each word of WORDS: 1 for NOW, 0 for the others.
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
    constexpr Mode kModes[] = {Mode::observe, Mode::tune};
    out.gauge("wq_tuned_build_info", "The version of wq-tuned that runs; always 1.");
    out.sample({{"version", version()}}, 1);
    out.gauge("wq_tuned_start_time_seconds", "When the daemon started, since 1970.");
    out.sample(static_cast<double>(in.started));
    out.gauge("wq_tuned_state", "1 for the state of the daemon, 0 for the others.");
    out.choice("state", kStates, in.state);
    out.gauge("wq_tuned_mode", "1 for the mode of the policy in use, 0 for the others.");
    for (const Mode mode : kModes)
        out.sample({{"mode", std::string(name_of(mode))}}, in.engine.policy().mode == mode ? 1 : 0);
}

void add_policy(Exposition& out, const PolicyFacts& policy) {
    out.gauge("wq_tuned_policy_info", "Hash of the policy on this host, and hash of its files; always 1.");
    if (!policy.hash.empty()) out.sample({{"hash", policy.hash}, {"sources", policy.sources}}, 1);
    out.gauge("wq_tuned_policy_files", "Number of files of the policy in use.");
    out.sample(number(policy.files));
    out.gauge("wq_tuned_policy_broken", "1 if the policy on disk was broken when it was last read.");
    out.sample(policy.broken ? 1 : 0);
    out.gauge("wq_tuned_policy_expired_rules", "Rules of the policy in use that have expired.");
    out.sample(number(policy.expired));
}

// The states in which a target gets a series of its own: we changed it, or an administrator should look at
// it. The most important state is first.
constexpr State kNamed[] = {State::quarantined, State::unsupported, State::external, State::comparing,
                            State::reverted,    State::pinned,      State::kept,     State::set};

void add_targets(Exposition& out, const Engine& engine) {
    std::map<State, std::vector<std::string>> names;
    for (const auto& [name, target] : engine.targets()) names[target.state].push_back(name);
    out.gauge("wq_tuned_targets", "Targets in each state.");
    for (const State state : kAllStates)
        out.sample({{"state", std::string(name_of(state))}}, number(names[state].size()));
    out.gauge("wq_tuned_target_state",
              "1 for the state of each target that wq-tuned changed, compares or cannot set.");
    std::size_t named = 0;
    std::size_t unnamed = 0;
    for (const State state : kNamed)
        for (const std::string& name : names[state])
            if (named++ < kMostTargetSeries)
                out.sample({{"target", name}, {"state", std::string(name_of(state))}}, 1);
            else
                unnamed++;
    out.gauge("wq_tuned_targets_unnamed",
              "Targets omitted from wq_tuned_target_state because there are too many.");
    out.sample(number(unnamed));
}

void add_writes(Exposition& out, const MetricsInput& in) {
    out.counter("wq_tuned_writes_total", "Writes to the kernel's files, those of experiments included.");
    out.sample(in.engine.writes());
    out.counter("wq_tuned_write_seconds_total",
                "Time that writes of scopes took, with the reads before and after each.");
    out.sample(static_cast<double>(in.engine.reconciler().write_time()) / 1e6);
    out.counter("wq_tuned_write_errors_total", "Tries to set a target, or to put it back, that failed.");
    out.sample(in.engine.reconciler().write_errors());
    out.counter("wq_tuned_reverts_total", "Settings that were taken back, by the watch or by an order.");
    out.sample({{"by", "watch"}}, number(in.experiment.totals().taken_back));
    out.sample({{"by", "order"}}, in.engine.orders().reverts());
}

void add_experiments(Exposition& out, const ExperimentTotals& totals) {
    out.counter("wq_tuned_slots_total", "Slots in which pairs of windows were measured.");
    out.sample(number(totals.slots));
    out.counter("wq_tuned_pairs_total", "Pairs of windows that were measured.");
    out.sample({{"result", "used"}}, number(totals.pairs));
    out.sample({{"result", "dropped"}}, number(totals.pairs_dropped));
    out.counter("wq_tuned_windows_lost_total",
                "Windows that were empty, late or cut off; each counts against its arm.");
    out.sample(number(totals.windows_lost));
    out.counter("wq_tuned_cut_off_total", "Targets that left a slot before its end.");
    out.sample(number(totals.cut_off));
    out.counter("wq_tuned_rests_total", "Candidates that were set aside for a while, without a verdict.");
    out.sample(number(totals.rests));
    out.counter("wq_tuned_verdicts_total", "Verdicts on comparisons, those of the watch included.");
    out.sample({{"outcome", "regressed"}}, number(totals.regressed));
    out.sample({{"outcome", "improved"}}, number(totals.improved));
    out.sample({{"outcome", "undecided"}}, number(totals.undecided));
}

void add_running(Exposition& out, const MetricsInput& in) {
    constexpr Course kCourses[] = {Course::dense, Course::sparse, Course::resting, Course::watched};
    std::map<Course, std::size_t> courses;
    std::size_t measured = 0;
    for (const auto& [name, target] : in.engine.targets()) {
        const auto view = in.experiment.view_of(name);
        if (!view) continue;
        courses[view->course]++;
        measured += view->measuring ? 1 : 0;
    }
    out.gauge("wq_tuned_comparisons", "Targets with a comparison, by its course.");
    for (const Course course : kCourses)
        out.sample({{"course", std::string(name_of(course))}}, number(courses[course]));
    out.gauge("wq_tuned_targets_measured", "Targets in the slot that runs.");
    out.sample(number(measured));
    out.gauge("wq_tuned_lost_seconds_today", "Time that all targets lost to experiments today (UTC).");
    out.sample(in.experiment.totals().lost_today);
}

// Writes only the workqueues with the most items.
void add_isolated(Exposition& out, const IsolatedItems& isolated) {
    if (isolated.cpus().empty()) return;
    out.gauge("wq_tuned_isolated_cpus", "Isolated CPUs.");
    out.sample(number(isolated.cpus().count()));
    std::vector<std::pair<std::string, std::uint64_t>> items;
    for (const auto& [name, count] : isolated.items()) items.emplace_back(name, count);
    std::ranges::stable_sort(items, std::ranges::greater{}, [](const auto& one) { return one.second; });
    if (items.size() > kMostIsolatedSeries) items.resize(kMostIsolatedSeries);
    out.counter("wq_tuned_isolated_items_total",
                "Items of per-CPU workqueues that started on isolated CPUs, no matter who queued them.");
    for (const auto& [name, count] : items) out.sample({{"workqueue", name}}, number(count));
}

// Returns the comparisons of this kernel and topology with the latest pairs, newest first.
std::vector<const LedgerEntry*> newest_comparisons(const MetricsInput& in) {
    const std::string kernel = kernel_key(in.engine.kernel());
    std::vector<const LedgerEntry*> out;
    for (const auto& [text, entry] : in.experiment.ledger().entries())
        if (entry.key.kernel == kernel && entry.key.topology == in.engine.inventory().fingerprint())
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
            {"kernel", kernel_key(in.engine.kernel())}};
}

// Each series has a hash of the labels of wq_tuned_machine_info. So it keeps its meaning if the host gets
// other CPUs or another kernel.
void add_evidence(Exposition& out, const MetricsInput& in) {
    Labels info = machine_labels(in);
    const std::string machine = fmt::format("{:016x}", hash_of(text_of(info)));
    info.insert(info.begin(), {"machine", machine});
    out.gauge("wq_tuned_machine_info", "The kind of this machine, and a hash of it; always 1.");
    out.sample(info, 1);
    const auto comparisons = newest_comparisons(in);
    const auto labels = [&](const LedgerEntry& entry, const Comparison::Column& column) {
        return Labels{{"machine", machine},
                      {"class", entry.key.kind},
                      {"reference", entry.key.reference},
                      {"reference_origin", entry.key.reference_origin},
                      {"candidate", entry.key.candidate},
                      {"counter", column.counter.name}};
    };
    out.gauge("wq_tuned_comparison_pairs", "Pairs of windows of a comparison, by counter.");
    for (const LedgerEntry* entry : comparisons)
        for (const Comparison::Column& column : entry->columns)
            out.sample(labels(*entry, column), number(column.worse.count));
    out.gauge("wq_tuned_comparison_effect_log",
              "ln of the cost under the candidate over that under the reference, mean over all pairs.");
    for (const LedgerEntry* entry : comparisons)
        for (const Comparison::Column& column : entry->columns)
            if (column.worse.count > 0)
                out.sample(labels(*entry, column), column.sum / number(column.worse.count));
    out.gauge("wq_tuned_evidence_log", "ln of the e-value of a comparison, by direction and stake.");
    for (const LedgerEntry* entry : comparisons)
        for (const Comparison::Column& column : entry->columns)
            for (const auto& [direction, state] :
                 {std::pair("better", &column.better), {"worse", &column.worse}})
                for (std::size_t k = 0; k < kStakes.size(); k++) {
                    Labels all = labels(*entry, column);
                    all.emplace_back("direction", direction);
                    all.emplace_back("stake", fmt::format("{}", kStakes[k]));
                    out.sample(all, state->logs[k]);
                }
}

// Returns the last verdict of each class and pair of arms on this kernel and topology: the newest
// kMostVerdictSeries of them, oldest first.
std::vector<const VerdictRecord*> last_verdicts(const MetricsInput& in) {
    const std::string kernel = kernel_key(in.engine.kernel());
    std::set<std::string> seen;
    std::vector<const VerdictRecord*> out;
    const auto& records = in.verdicts.records();
    for (auto r = records.rbegin(); r != records.rend() && out.size() < kMostVerdictSeries; ++r) {
        const LedgerKey& key = r->key;
        if (!r->judged || key.kernel != kernel || key.topology != in.engine.inventory().fingerprint())
            continue;
        if (seen.insert(label_value(fmt::format("{}\n{}\n{}", key.kind, key.reference, key.candidate)))
                .second)
            out.push_back(&*r);
    }
    std::reverse(out.begin(), out.end());
    return out;
}

Labels arms_of(const VerdictRecord& record) {
    return {
        {"class", record.key.kind}, {"reference", record.key.reference}, {"candidate", record.key.candidate}};
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
    add_targets(out, in.engine);
    add_writes(out, in);
    add_experiments(out, in.experiment.totals());
    add_running(out, in);
    add_isolated(out, in.isolated);
    add_evidence(out, in);
    add_verdicts(out, in);
    return std::move(out).text();
}

void IsolatedItems::add(const CpuSet& cpus, const std::vector<StartedWork>& now) {
    const bool same = cpus_ == cpus;
    std::map<Key, Known> known;
    for (const StartedWork& one : now) {
        const Key key{one.address, one.workqueue};
        const auto at = known_.find(key);
        Known sum = at != known_.end() ? at->second : Known{};
        // A new workqueue starts at zero. If the count fell, another workqueue has reused the address and the
        // name.
        if (same) sum.items += one.items - (one.items >= sum.counted ? sum.counted : 0);
        sum.counted = one.items;
        known[key] = sum;
    }
    keep_names(known);
    known_ = std::move(known);
    cpus_ = cpus;
}

// A counter of a metric must not fall. So the items of a workqueue that is gone stay in the sum of its name,
// as long as another workqueue has that name.
void IsolatedItems::keep_names(const std::map<Key, Known>& now) {
    std::set<std::string> names;
    for (const auto& [key, sum] : now) names.insert(key.second);
    for (const auto& [key, sum] : known_)
        if (!now.contains(key)) gone_[key.second] += sum.items;
    std::erase_if(gone_, [&](const auto& one) { return !names.contains(one.first); });
}

std::map<std::string, std::uint64_t> IsolatedItems::items() const {
    std::map<std::string, std::uint64_t> out = gone_;
    for (const auto& [key, sum] : known_) out[key.second] += sum.items;
    return out;
}

namespace {

constexpr unsigned kTicks = 4;  // from one sample to the next

}  // namespace

void IsolatedWatch::tick(WorkCounters& counters) {
    if (wait_ > 0) {
        wait_--;
        return;
    }
    wait_ = kTicks - 1;
    const CpuSet cpus = read_isolation(paths_).cpus();
    const auto started = cpus.empty() ? std::vector<StartedWork>{} : counters.started_on(cpus);
    if (started) items_.add(cpus, *started);
    if (!started && passes(started.error())) return;
    const std::string why = started ? "" : started.error().text;
    if (!why.empty() && why != error_)
        log_.write({LOG_NOTICE, Event::none, "no metric of work on isolated CPUs: " + why});
    error_ = why;
}

}  // namespace wq
