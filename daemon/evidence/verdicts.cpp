// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/verdicts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <syslog.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "bpf/work_sums.h"

namespace wq {
namespace {

constexpr double kWeight = 1.0 / 8;     // of the last pair in a mean
constexpr double kLeastPercent = 0.01;  // shown

std::string percent_text(double percent) {
    if (percent < kLeastPercent) return percent > 0 ? "under 0.01%" : "0%";
    return percent < 10 ? fmt::format("{:.2g}%", percent) : fmt::format("{:.0f}%", percent);
}

// "KEY 2 -> 12"; "KEY 2" if both are the same; "" if one is not known.
std::string change_of(const char* key, const std::optional<unsigned>& from,
                      const std::optional<unsigned>& to) {
    if (!from || !to) return "";
    return *from == *to ? fmt::format(", {} {}", key, *from) : fmt::format(", {} {} -> {}", key, *from, *to);
}

// ", queue_work() 1.2/3/4.1/9 us -> 1/2/3/8 us (p50/p90/p95/p99)"; "" if one is not known.
std::string enqueue_change(const ArmWork& from, const ArmWork& to) {
    if (!from.enqueue_ns || !to.enqueue_ns) return "";
    const auto us = [](const ArmWork& arm) {
        std::array<double, 4> out = *arm.enqueue_ns;
        for (double& ns : out) ns /= 1000;
        return fmt::format("{:.2g} us", fmt::join(out, "/"));
    };
    return fmt::format(", queue_work() {} -> {} (p50/p90/p95/p99)", us(from), us(to));
}

ArmWork work_of(const WorkCount& mean, double lowest) {
    ArmWork out;
    Histogram enqueued(kTimeBits);
    for (unsigned i = 0; i < mean.enqueued.size(); i++) enqueued.add(i, mean.enqueued[i]);
    const auto of_items = [&](double share) { return enqueued.percentile(share); };
    if (enqueued.items() > 0) out.enqueue_ns = {of_items(0.5), of_items(0.9), of_items(0.95), of_items(0.99)};
    if (!std::isnan(mean.lock)) {
        out.lock_ns = std::max(mean.lock - lowest, 0.0);
        if (mean.latency > 0) out.lock_percent = std::min(100 * *out.lock_ns / mean.latency, 100.0);
    }
    if (mean.pools > 0) out.pools = mean.pools;
    if (mean.workers > 0) out.workers = mean.workers;
    return out;
}

template <class T>
nlohmann::json json_of(const T& value) {
    JsonText out{.may_replace_bytes = true};
    std::string error;
    JsonPlace(out, error).value(const_cast<T&>(value));
    return error.empty() ? nlohmann::json::parse(out.text) : nlohmann::json(nullptr);
}

constexpr std::size_t kMostRecords = 1000;
constexpr StateRules kRules{.limit = 1U << 20, .may_replace_bytes = true};
constexpr unsigned kMaxCount = 1'000'000'000;            // most pairs and comparisons in a valid line
constexpr std::int64_t kLatest = std::int64_t{1} << 40;  // s; tens of thousands of years
constexpr double kLargest = std::numeric_limits<double>::max();

// An e-value, whose logarithm the record has.
void describe_evidence(JsonPlace& at, const char* name, double& log) {
    double value = at.writes() ? evidence_of(log) : 0;
    at(name, value, 0.0, kLargest);
    if (!at.writes()) log = std::log(std::max(value, 1e-300));
}

}  // namespace

static void describe(JsonPlace& at, ArmWork& work) {
    constexpr double kMost = 1e18;  // ns
    at("lock_ns", work.lock_ns, 0.0, kMost);
    at("lock_percent", work.lock_percent, 0.0, 100.0);
    at("pools", work.pools);
    at("workers", work.workers);
    at("enqueue_ns", work.enqueue_ns, 0.0, kMost);
}

void describe(JsonPlace& at, Contention& contention) {
    at("reference", contention.reference);
    at("candidate", contention.candidate);
}

nlohmann::json to_json(const std::optional<Contention>& contention) {
    return json_of(contention);
}

std::optional<Contention> contention_in(nlohmann::json json) {
    std::optional<Contention> out;
    std::string error;
    JsonPlace(json, error).value(out);
    return error.empty() ? out : std::nullopt;
}

std::string text_of(const Contention& contention) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    const std::string lock = from.lock_percent && to.lock_percent
                                 ? fmt::format("{} of latency -> {}", percent_text(*from.lock_percent),
                                               percent_text(*to.lock_percent))
                                 : "not seen";
    return "lock wait " + lock + change_of("pools", from.pools, to.pools) +
           change_of("kworkers", from.workers, to.workers) + enqueue_change(from, to);
}

std::string lock_text(const Contention& contention, const std::string& reference,
                      const std::string& candidate) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    if (!from.lock_percent || !to.lock_percent || !from.lock_ns || !to.lock_ns)
        return "not seen on this kernel";
    return fmt::format("{} of latency under {} ({:.0f} ns an item), {} under {} ({:.0f} ns){}",
                       percent_text(*from.lock_percent), reference, *from.lock_ns,
                       percent_text(*to.lock_percent), candidate, *to.lock_ns,
                       *from.lock_percent < kLeastLockPercent
                           ? fmt::format(": a scope finer than {} can hardly gain by the lock", reference)
                           : "");
}

std::string pools_text(const Contention& contention, const std::string& reference,
                       const std::string& candidate) {
    const ArmWork &from = contention.reference, &to = contention.candidate;
    if (!from.workers || !to.workers || !from.pools || !to.pools) return "";
    return fmt::format("{} with {} kworkers under {}, {} with {} under {}", *from.pools, *from.workers,
                       reference, *to.pools, *to.workers, candidate);
}

void WorkSeen::add(const WorkCount& reference, const WorkCount& candidate) {
    const bool begins = std::exchange(begins_, false);
    for (const auto& [mean, count] : {std::pair(&means_[0], &reference), {&means_[1], &candidate}}) {
        const WorkCount before = *mean;
        *mean = *count;
        for (std::size_t i = 0; i < std::min(before.enqueued.size(), mean->enqueued.size()); i++)
            mean->enqueued[i] += before.enqueued[i];
        if (begins || std::isnan(before.lock) || std::isnan(count->lock)) continue;
        mean->lock = before.lock + kWeight * (count->lock - before.lock);
        mean->latency = before.latency + kWeight * (count->latency - before.latency);
    }
}

Contention WorkSeen::above(double lowest) const {
    return {work_of(means_[0], lowest), work_of(means_[1], lowest)};
}

static void describe(JsonPlace& at, Standing& standing) {
    at("counter", standing.counter);
    at("pairs", standing.pairs, 0U, kMaxCount);
    describe_evidence(at, "e_regressed", standing.log_regressed);
    describe_evidence(at, "e_improved", standing.log_improved);
    std::optional<double> percent;
    std::optional<std::array<double, 2>> interval;
    if (standing.pairs > 0) percent = standing.effect.percent;
    if (const auto& known = standing.effect.interval) interval = {known->low, known->high};
    at("effect_percent", percent);
    at("interval_percent", interval);
    if (at.writes()) return;
    standing.effect.percent = percent.value_or(0);
    if (interval) standing.effect.interval = {(*interval)[0], (*interval)[1]};
}

nlohmann::json to_json(const Standing& standing) {
    return json_of(standing);
}

Standing standing_of(const Decision& decision, const std::vector<Comparison::Column>& columns) {
    return {decision.counter, static_cast<unsigned>(decision.pairs), decision.log_worse, decision.log_better,
            columns.empty() ? Effect{} : Comparison(columns).effect(decision.column, decision.newest)};
}

static void describe(JsonPlace& at, Differences& differences) {
    at("counter", differences.counter);
    at("higher_is_better", differences.higher_is_better);
    at("last", differences.last);
    if (differences.last.empty() || differences.last.size() > Comparison::kLastDifferences)
        at.refuse("not a number of differences");
}

void describe(JsonPlace& at, VerdictRecord& r) {
    describe(at, r.key);
    at("target", r.target);
    at("cpus", r.cpus);
    at("time", r.time, std::int64_t{0}, kLatest);
    at("comparison", r.comparison, 1U, kMaxCount);
    at("judged", r.judged);
    at("verdict", r.outcome);
    at("reason", r.reason);
    describe(at, r.standing);
    at("alpha", r.settings.alpha, std::numeric_limits<double>::min(), kMaxAlpha);
    at("tolerance", r.settings.tolerance, 0.0, 1.0);
    at("max_pairs", r.settings.max_pairs, 1U, kMaxPairs);
    at("contention", r.contention);
    at("differences", r.differences);
}

nlohmann::json to_json(const VerdictRecord& record) {
    return json_of(record);
}

std::vector<Differences> differences_of(const std::vector<Comparison::Column>& columns) {
    std::vector<Differences> out;
    for (const Comparison::Column& c : columns)
        if (!c.counter.guard && !c.last.empty())
            out.push_back({c.counter.name, c.counter.higher_is_better, {c.last.begin(), c.last.end()}});
    return out;
}

std::string class_of(const std::string& name) {
    std::string out;
    for (const char c : name)
        if (std::isdigit(static_cast<unsigned char>(c)) == 0)
            out += c;
        else if (out.empty() || out.back() != '#')
            out += '#';
    return out;
}

std::string effect_text(const Standing& s) {
    if (s.pairs == 0) return "-";
    return s.counter + " " + effect_text(s.effect);
}

std::string text_of(const Standing& s) {
    if (s.pairs == 0) return "no pair was measured";
    return effect_text(s) + ", " + plural(s.pairs, "pair");
}

std::string text_of(const VerdictRecord& r) {
    const std::string why = r.reason.empty() ? "" : fmt::format(" ({})", r.reason);
    return fmt::format("{} against {}: {}{}, {}", r.key.candidate, r.key.reference, name_of(r.outcome), why,
                       text_of(r.standing));
}

std::size_t taken_back_in_month(const std::vector<VerdictRecord>& records, std::int64_t now) {
    using namespace std::chrono;
    const auto month_of = [](std::int64_t time) {
        const year_month_day date(floor<days>(sys_seconds(seconds(time))));
        return date.year() / date.month();
    };
    std::set<std::pair<std::string, unsigned>> found;  // targets of one comparison have a record each
    for (const VerdictRecord& r : records)
        if ((r.reason == kWatchReason || r.reason == kSetFirstReason) && month_of(r.time) == month_of(now))
            found.emplace(r.key.text(), r.comparison);
    return found.size();
}

double evidence_of(double log) {
    return std::min(std::exp(log), kLargest);
}

VerdictStore::VerdictStore(std::string path) : log_(std::move(path), kRules) {}

Status VerdictStore::take(Result<Lines> lines) {
    if (!lines) return tl::unexpected(lines.error());
    for (auto& line : *lines) {
        last_ = line.number;
        remember(std::move(line.value));
    }
    return {};
}

Status VerdictStore::read() {
    return take(log_.read());
}

Status VerdictStore::load() {
    auto lines = log_.load();
    if (lines)
        for (auto& line : *lines) line.value.differences = {};
    return take(std::move(lines)).map_error([](const Error& e) {
        return Error{e.code, e.text + ", the history starts from scratch"};
    });
}

void VerdictStore::complete(const Ledger& ledger) {
    std::map<std::uint64_t, const LedgerEntry*> lost;
    for (const auto& [key, entry] : ledger.entries())
        if (entry.number > last_) lost[entry.number] = &entry;
    for (const auto& [number, entry] : lost) {
        const Decision decision = Comparison(entry->columns).decide({});
        VerdictRecord record;
        record.key = entry->key;
        record.target = entry->key.kind;
        record.time = entry->decided != 0 ? entry->decided : entry->updated;
        record.comparison = entry->alarms + 1;
        record.outcome = entry->judgement;
        record.reason = pairs_of(*entry) == 0 ? kWatchReason : entry->decided == 0 ? kMaxPairsReason : "";
        record.standing = standing_of(decision, entry->columns);
        record.differences = differences_of(entry->columns);
        last_ = number - 1;
        add(std::move(record));
    }
}

const VerdictRecord* VerdictStore::latest(const LedgerKey& key) const {
    return find_in(latest_, key.text());
}

void VerdictStore::remember(VerdictRecord record) {
    if (record.judged) latest_[record.key.text()] = record;
    records_.push_back(std::move(record));
    if (records_.size() > kMostRecords) records_.erase(records_.begin());
}

std::uint64_t VerdictStore::add(VerdictRecord record) {
    unsaved_.push_back({++last_, record});
    record.differences = {};
    remember(std::move(record));
    return last_;
}

void VerdictStore::save(RecordWriter& record, Log& log) {
    if (unsaved_.empty()) return;
    record.put(
        path(), [file = log_, lines = unsaved_] { return file.append(lines); },
        [this, &log, number = last_](const Status& done) {
            if (!done) return log.write({LOG_WARNING, Event::none, done.error().text});
            std::erase_if(unsaved_, [&](const auto& line) { return line.number <= number; });
        });
}

}  // namespace wq
