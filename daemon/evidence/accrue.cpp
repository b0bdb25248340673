// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A decision stays until the opposite is decided. `undecided` becomes `improved` or `regressed`. `regressed`
// stays, even if its evidence gets weaker in a retrial, until there is enough evidence for `improved`. Only
// an alarm of the watch ends `improved`: it clears the evidence, and the comparison starts again. After n
// alarms it may use alpha / 2^(n+1).
#include "evidence/accrue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace wq {
namespace {

// A pair that came at NOW, while the candidate was in force.
void add_after(LedgerEntry& entry, std::size_t column, std::int64_t now) {
    entry.after.resize(entry.columns.size());
    const double d = entry.columns[column].last.back();
    AfterVerdict& after = entry.after[column];
    after.add({1, d, d * d});
    if (after.pairs == 1) after.first = now;
    after.last = now;
}

// Adds PAIR to the evidence, and to a watch the difference that each column got. MEASURED: when; empty
// for one that lost a window, which says nothing about the scope's worth.
void add(LedgerEntry& entry, const PairEvidence& pair, bool watched,
         std::optional<std::int64_t> measured = {}) {
    std::vector<std::uint64_t> before;
    for (const Comparison::Column& column : entry.columns) before.push_back(column.worse.count);
    Comparison comparison(std::move(entry.columns));
    if (pair.lost)
        comparison.add_lost_window(*pair.lost);
    else
        comparison.add(pair.values);
    entry.columns = std::move(comparison).take();
    if (!watched) return;
    entry.watch.resize(entry.columns.size());
    for (std::size_t i = 0; i < entry.columns.size(); i++) {
        const Comparison::Column& column = entry.columns[i];
        if (column.worse.count == before[i]) continue;
        entry.watch[i].add(column.last.back() - std::log1p(column.counter.tolerance));
        if (measured && !column.counter.guard) add_after(entry, i, *measured);
    }
}

bool alarms(const LedgerEntry& entry, std::uint64_t run_length) {
    return watch_log(entry) >=
           std::log(static_cast<double>(entry.columns.size()) * static_cast<double>(run_length));
}

// The decision for the counter whose e-detector raised the alarm, with the detector's value. Only the newest
// differences tell the effect: most are from before the change.
Decision alarm_of(const LedgerEntry& entry) {
    const auto loudest = std::ranges::max_element(entry.watch, {}, &EDetector::log);
    const auto i = static_cast<std::size_t>(loudest - entry.watch.begin());
    const Comparison::Column& found = entry.columns[i];
    return {Judgement::regressed,   found.counter.name, found.worse.count, loudest->log(), 0, i, {},
            Comparison::kLeastPairs};
}

void begin_anew(LedgerEntry& entry) {
    std::vector<ComparedCounter> counters;
    for (const Comparison::Column& column : entry.columns) counters.push_back(column.counter);
    entry.columns = Comparison(counters).columns();
    entry.watch.clear();
    entry.alarms++;
}

// What improved while it was in force stays, and so do its pairs: they did not bring it there.
void decide(LedgerEntry& entry, Judgement judgement, const AccrualRule& rule) {
    entry.judgement = judgement;
    entry.decided = rule.now;
    entry.decided_pairs = pairs_of(entry);
    if (judgement != Judgement::improved || !rule.watched) entry.after.clear();
}

Turn turn_of(LedgerEntry& entry, const Decision& decision, const AccrualRule& rule) {
    const std::uint64_t pairs = pairs_of(entry);
    switch (decision.judgement) {
        case Judgement::improved:
            decide(entry, Judgement::improved, rule);
            entry.watch.assign(entry.columns.size(), {});
            return Turn::improved;
        case Judgement::regressed:
            if (entry.judgement != Judgement::regressed) {
                decide(entry, Judgement::regressed, rule);
                entry.watch.clear();
                return rule.watched ? Turn::taken_back : Turn::regressed;
            }
            break;
        case Judgement::undecided:
            // Reported once, also if a lost window was the last of these pairs.
            if (entry.judgement == Judgement::undecided && entry.decided_pairs < rule.max_pairs &&
                pairs >= rule.max_pairs) {
                entry.decided_pairs = pairs;
                return Turn::undecided;
            }
            break;
    }
    if (entry.judgement == Judgement::regressed && pairs >= entry.decided_pairs + kRetryPairs)
        decide(entry, Judgement::regressed, rule);
    return Turn::none;
}

}  // namespace

void add_lost_window(LedgerEntry& entry, Side side) {
    add(entry, {{}, side}, !entry.watch.empty());
}

Decision decision_of(const LedgerEntry& entry, double alpha, unsigned candidates) {
    return Comparison(entry.columns).decide({alpha_after(alpha, entry.alarms), candidates});
}

double watch_log(const LedgerEntry& entry) {
    double most = -std::numeric_limits<double>::infinity();
    for (const EDetector& each : entry.watch) most = std::max(most, each.log());
    return entry.watch.empty() ? 0 : most;
}

Accrual accrue(LedgerEntry& entry, const PairEvidence& pair, const AccrualRule& rule) {
    // A kept arm is watched, also by pairs that an order asked for.
    const bool watched = rule.watched || entry.judgement == Judgement::improved;
    add(entry, pair, watched, pair.lost ? std::nullopt : std::optional(rule.now));
    entry.updated = rule.now;
    const double alpha = rule.only_one ? rule.alpha : alpha_after(rule.alpha, entry.alarms);
    Accrual out;
    out.decision = Comparison(entry.columns).decide({alpha, rule.candidates});
    out.watch = watch_log(entry);
    if (watched && alarms(entry, rule.run_length)) {
        out.turn = Turn::taken_back;
        out.decision = alarm_of(entry);
        out.columns = entry.columns;
        begin_anew(entry);
        decide(entry, Judgement::regressed, rule);
    } else if (entry.judgement != Judgement::improved) {
        out.turn = turn_of(entry, out.decision, rule);
        if (out.turn != Turn::none) out.columns = entry.columns;
    }
    return out;
}

constexpr double kLeastExpected = 30;  // items; with fewer, a third can be chance
constexpr double kTimes = 3;
constexpr double kDeviations = 4;  // standard deviations of a pair's difference that noise explains

bool starves(double completed, double expected) {
    return expected >= kLeastExpected && completed * kTimes < expected;
}

bool is_beyond_noise(const std::deque<double>& before, double d) {
    if (before.size() < kLeastForNoise) return false;
    const auto n = static_cast<double>(before.size());
    double mean = 0;
    for (const double each : before) mean += each / n;
    double squares = 0;
    for (const double each : before) squares += (each - mean) * (each - mean);
    // A deviation computed from few differences is itself uncertain: with four of them, by a factor of two.
    const double deviation = std::sqrt(squares / (n - 1)) * (1 + 4 / n);
    return d > std::log(kTimes) + kDeviations * deviation;
}

void LostTime::add(std::int64_t day, double d, double seconds) {
    if (day != day_) lost_ = 0;
    day_ = day;
    lost_ += d > 0 ? seconds * -std::expm1(-d) : 0;
}

}  // namespace wq
