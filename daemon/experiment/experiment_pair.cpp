// SPDX-License-Identifier: LGPL-2.1-or-later
// The result of a pair: evidence in the ledger, a verdict, or a rest.
#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "counters/counter_table.h"
#include "experiment/experiment.h"
#include "targets/candidates.h"

namespace wq {
namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;
constexpr std::uint64_t kDay = 24 * kHour;
constexpr std::uint64_t kMostStuck = 20;  // at most one item in 20
constexpr unsigned kMostStarved = 2;      // consecutive pairs
constexpr double kClearGain = -10;  // percent: the watch slows down while the whole interval is below it

// The largest extra cost of one arm in the pair that was added, over all judged counters, as a difference of
// logarithms: of the candidate for SIGN 1, of the reference for SIGN -1. Empty if no counter was added.
std::optional<double> added(const LedgerEntry& before, const LedgerEntry& after, double sign) {
    std::optional<double> out;
    for (std::size_t i = 0; i < after.columns.size(); i++) {
        const Comparison::Column& column = after.columns[i];
        if (column.counter.guard || column.last.empty()) continue;
        if (i < before.columns.size() && before.columns[i].worse.count == column.worse.count) continue;
        out = std::max(out.value_or(sign * column.last.back()), sign * column.last.back());
    }
    return out;
}

// A value near zero in both windows is no cost: on an idle disk, tasks stall for 0 us in one window, and for
// 40 us in the next.
bool is_next_to_nothing(const ComparedCounter& counter, const PairValues& values) {
    const CounterKind* kind = find_counter(counter.name);
    return kind != nullptr && std::max(values.reference, values.candidate) < kind->least_alarming;
}

// Whether a judged counter is three times worse, beyond the noise of the pairs BEFORE.
bool costs_too_much(const LedgerEntry& before, const PairEvidence& evidence) {
    if (evidence.lost) return false;
    for (std::size_t i = 0; i < evidence.values.size(); i++) {
        const Comparison::Column& column = before.columns[i];
        const auto& values = evidence.values[i];
        if (!column.counter.guard && values && !is_next_to_nothing(column.counter, *values) &&
            is_beyond_noise(column.last, log_ratio(column.counter, *values)))
            return true;
    }
    return false;
}

}  // namespace

LedgerEntry Experiment::entry_of(const Member& member) const {
    const LedgerEntry* known = ledger_.ledger().find(member.key);
    if (known != nullptr) return *known;
    LedgerEntry out;
    out.key = member.key;
    out.columns = Comparison(edges_.engine.keys().measures().counters).columns();
    return out;
}

AccrualRule Experiment::rule_for(const Member& member) const {
    const Judging& judge = edges_.engine.policy().judge;
    return {judge.settings.alpha, member.taker.candidates,      judge.settings.max_pairs,
            judge.run_length,     member.taker.candidate_holds, edges_.wall()};
}

void Experiment::take_pair(Member& member, const PairResult& result, const std::vector<double>& others) {
    Notes& notes = notes_[member.taker.name];
    const SlotTimes& times = slot_->clock.times();
    const double seconds = static_cast<double>(times.counted()) / 1e6;
    if (no_counters_.empty() && result.counted) {
        notes.rate = notes.expected = static_cast<double>(result.items) / (2 * seconds);
        notes.rate_at = edges_.now();
    }
    const std::uint64_t recheck = us(edges_.engine.policy().judge.recheck);
    if (member.taker.course == Course::watched)
        notes.next_watch = edges_.now() + std::max(notes.pause, recheck);
    else
        notes.next_sparse = edges_.now() + recheck;
    if (is_stuck(member, result)) return;
    if (!result.drop.empty()) return drop_pair(member, result.drop);
    PairEvidence evidence{by_arm(result, member.candidate_first), {}};
    const auto& counters = edges_.engine.keys().measures().counters;
    for (std::size_t i = 0; i < counters.size(); i++)
        if (counters[i].name == kOthers) evidence.values[i] = others_by_arm(others, member.candidate_first);
    if (result.lost) evidence.lost = member.side(*result.lost);
    // Half of lead and drain: only the second window's arm is in place then.
    take(member, evidence, static_cast<double>(times.window + (times.lead + times.drain) / 2) / 1e6);
}

// Work that queues itself again stays on its pool. A scope that is written now does not reach it.
bool Experiment::is_stuck(Member& member, const PairResult& result) {
    Notes& notes = notes_[member.taker.name];
    // Sums over about the last eight pairs.
    notes.items += result.items - notes.items / 8;
    notes.stuck += result.stuck - notes.stuck / 8;
    if (notes.stuck * kMostStuck <= notes.items ||
        notes.items / 2 < edges_.engine.policy().judge.settings.min_items)
        return false;
    notes.items = notes.stuck = 0;
    // A watch goes on: the arm in force can still become worse.
    if (member.taker.course == Course::watched) {
        drop_pair(member, kStuckReason);
        return true;
    }
    totals_.pairs_dropped++;
    rest(member.taker.name, member.taker.arms, us(edges_.engine.policy().judge.retry_after), kStuckReason);
    const LedgerEntry entry = entry_of(member);
    VerdictRecord record = record_of(member, {}, {}, entry.alarms + 1);
    record.reason = kStuckReason;
    keep(record, member.key.text());
    if (member.taker.by_hand) orders_.erase(member.taker.name);
    return true;
}

void Experiment::drop_pair(Member& member, const std::string& why) {
    totals_.pairs_dropped++;
    Notes& notes = notes_[member.taker.name];
    if (member.taker.course == Course::watched) return miss(member, why);
    if (++notes.dropped < kMostDropped) return;
    notes.dropped = 0;
    rest(member.taker.name, member.taker.arms, kHour,
         fmt::format("{} consecutive pairs were dropped: {}", kMostDropped, why));
    if (member.taker.by_hand) give_up(member, why);
}

// A watch never rests. If it gets no pairs, this is logged once.
void Experiment::miss(const Member& member, const std::string& why) {
    const std::string& name = member.taker.name;
    const Arms& arms = member.taker.arms;
    if (++notes_[name].missed != kMostDropped) return;
    say(LOG_NOTICE, Event::none,
        fmt::format("{}: the watch of {} gets no data: {} consecutive pairs were dropped: {}", name,
                    arms.candidate.name(), kMostDropped, why),
        name, arms, why);
}

void Experiment::take(Member& member, const PairEvidence& evidence, double in_place) {
    const std::string& name = member.taker.name;
    const std::int64_t day = edges_.wall() / 86'400;
    Notes& notes = notes_[name];
    const LedgerEntry before = entry_of(member);
    LedgerEntry entry = before;
    const Comparison comparison(entry.columns);
    if (!evidence.lost)
        if (const std::string why = comparison.why_refused(evidence.values); !why.empty())
            return drop_pair(member, why);
    const Accrual accrual = accrue(entry, evidence, rule_for(member));
    (member.taker.course == Course::watched ? notes.missed : notes.dropped) = 0;
    notes.failures = 0;
    totals_.pairs++;
    if (evidence.lost) totals_.windows_lost++;
    // A candidate that has not improved may cost time. While it is in force, the reference may cost time,
    // too.
    const bool proven = member.taker.course == Course::watched;
    const bool spent = is_spent(name);
    if (const auto d = added(before, entry, 1); d && !proven) notes.lost.add(day, *d, in_place);
    if (const auto d = added(before, entry, -1); d && member.taker.candidate_holds)
        notes.lost.add(day, *d, in_place);
    if (!spent && is_spent(name)) turned_ = true;  // what was set first may go back
    if (!evidence.lost && member.taker.course == Course::dense) {
        const std::string key = member.key.text();
        ComparisonReadings& readings = readings_[key];
        // Limits the size: comparisons that ended because of hotplug or a new policy never get a verdict.
        if (readings_.size() > kMostReadings)
            readings_.erase(readings_.begin()->first == key ? std::next(readings_.begin())
                                                            : readings_.begin());
        if (readings.counters.empty())
            for (const ComparedCounter& c : edges_.engine.keys().measures().counters)
                if (!c.guard) readings.counters.push_back({c.name, c.higher_is_better});
        std::vector<PairValues> pair;
        for (std::size_t i = 0; i < evidence.values.size(); i++)
            if (!entry.columns[i].counter.guard && evidence.values[i])
                pair.push_back({evidence.values[i]->reference, evidence.values[i]->candidate});
        readings.add(std::move(pair));
    }
    ledger_.change().put(entry);
    pace(member, entry);
    const bool open = accrual.turn == Turn::none || accrual.turn == Turn::undecided;
    if (open && member.taker.course != Course::watched) be_cautious(member, before, evidence);
    std::optional<VerdictRecord> verdict;
    if (accrual.turn != Turn::none) verdict = turned(member, entry, accrual);
    count_orders(member, verdict);
}

// Sets the candidate aside for an hour, without a verdict.
void Experiment::be_cautious(Member& member, const LedgerEntry& before, const PairEvidence& evidence) {
    Notes& notes = notes_[member.taker.name];
    const bool starved =
        evidence.lost == Side::candidate && member.pair->is_cut(member.candidate_first ? 0 : 1);
    notes.starved = starved ? notes.starved + 1 : 0;
    std::string why;
    if (notes.starved >= kMostStarved)
        why = "in two consecutive pairs its work completed at less than a third of the expected rate";
    else if (costs_too_much(before, evidence))
        why = "its cost was more than three times the reference's, more than noise explains";
    if (why.empty()) return;
    notes.starved = 0;
    rest(member.taker.name, member.taker.arms, kHour, why, true);
    if (member.taker.by_hand) give_up(member, why);
}

void Experiment::rest(const std::string& name, const Arms& arms, std::uint64_t time, const std::string& why,
                      bool suspect) {
    notes_[name].rests[arms.key()] = {edges_.now() + time, why, suspect};
    totals_.rests++;
    turned_ = true;
    say(LOG_NOTICE, Event::none,
        fmt::format("{}: the comparison of {} with {} is paused for {}: {}", name, arms.candidate.name(),
                    arms.reference.name(), rough_time(time / kSecond), why),
        name, arms, why);
}

// While the kept arm is clearly better, the watch slows down, until it has a pair a day. A pair that does not
// agree ends that.
void Experiment::pace(Member& member, const LedgerEntry& entry) {
    if (member.taker.course != Course::watched) return;
    Notes& notes = notes_[member.taker.name];
    const std::uint64_t recheck = us(edges_.engine.policy().judge.recheck);
    const auto interval = Comparison(entry.columns).effect(0).interval;
    const auto& last = entry.columns.front().last;
    const bool agrees = !last.empty() && last.back() < 0;
    const bool clear = agrees && interval && interval->high < kClearGain;
    notes.pause = clear ? std::min(2 * std::max(notes.pause, recheck), std::max(kDay, recheck)) : recheck;
    notes.next_watch = edges_.now() + notes.pause;
}

VerdictRecord Experiment::turned(const Member& member, const LedgerEntry& entry, const Accrual& accrual) {
    turned_ = true;
    // If the watch took the candidate back, the entry already belongs to the next comparison.
    const unsigned trial = accrual.turn == Turn::taken_back ? std::max(entry.alarms, 1U) : entry.alarms + 1;
    VerdictRecord record = record_of(member, accrual.decision, accrual.effect, trial);
    switch (accrual.turn) {
        case Turn::none:
            break;
        case Turn::improved:
            totals_.improved++;
            break;
        case Turn::regressed:
            totals_.regressed++;
            break;
        case Turn::undecided:
            totals_.undecided++;
            record.reason = kMaxPairsReason;
            break;
        case Turn::taken_back:
            totals_.regressed++;
            totals_.taken_back++;
            record.outcome = Judgement::regressed;
            if (pairs_of(entry) == 0) record.reason = kWatchReason;  // an alarm began the evidence anew
            break;
    }
    notes_[member.taker.name].next_watch = 0;
    keep(record, member.key.text());
    return record;
}

VerdictRecord Experiment::record_of(const Member& member, const Decision& decision, const Effect& effect,
                                    unsigned trial) const {
    VerdictRecord out;
    out.key = member.record_key;
    out.target = member.taker.name;
    out.time = edges_.wall();
    out.comparison = trial;
    out.outcome = decision.judgement;
    out.standing = {decision.counter, static_cast<unsigned>(decision.pairs), decision.log_worse,
                    decision.log_better, effect};
    out.settings = edges_.engine.policy().judge.settings;
    out.settings.alpha = alpha_after(out.settings.alpha, trial - 1);
    return out;
}

VerdictRecord Experiment::record_so_far(const Member& member) const {
    if (!why_unjudged().empty()) return record_of(member, {}, {}, 1);  // an entry would have only guards
    const LedgerEntry entry = entry_of(member);
    const Decision decision =
        decision_of(entry, edges_.engine.policy().judge.settings.alpha, member.taker.candidates);
    return record_of(member, decision, Comparison(entry.columns).effect(decision.column), entry.alarms + 1);
}

// Adds RECORD to the history at once. The journal and the disk get it after the slot.
void Experiment::keep(VerdictRecord record, const std::string& key) {
    edges_.verdicts.add(record);
    to_write_.push_back({std::move(record), key});
}

void Experiment::write_verdicts() {
    for (const auto& [record, key] : std::exchange(to_write_, {})) write(record, key);
}

void Experiment::write(const VerdictRecord& record, const std::string& key) {
    say(record);
    const std::string& path = edges_.verdicts.path();
    edges_.record.put(
        path, [path, text = edges_.verdicts.text()] { return VerdictStore::write(path, text); },
        [this](const Status& done) {
            if (!done) edges_.log.write({LOG_WARNING, Event::none, done.error().text});
        });
    ledger_.save(edges_.now());
    const auto found = readings_.find(key);
    if (found == readings_.end() || found->second.pairs.empty()) return;
    // After an order that was cut off the comparison may go on, and its verdict is about all pairs: keeps
    // them.
    ComparisonReadings readings = record.judged ? std::move(found->second) : found->second;
    if (record.judged) readings_.erase(found);
    edges_.record.put(
        fmt::format("{}: {} of {}", edges_.paths.readings(), record.target, record.time),
        [paths = edges_.paths, record, readings = std::move(readings)] {
            return keep_readings(paths, record, readings);
        },
        [this](const Status& done) {
            if (!done)
                edges_.log.write({LOG_WARNING, Event::none,
                                  done.error().in("the pairs of a comparison cannot be saved").text});
        });
}

// Logs one event per verdict.
void Experiment::say(const VerdictRecord& r) {
    const bool notable = r.judged && r.outcome != Judgement::undecided;
    edges_.log.write({notable ? LOG_NOTICE : LOG_INFO,
                      r.judged ? Event::verdict : Event::comparison_cut_off,
                      fmt::format("{}: {} against {}: {}{}: {}", r.target, r.key.candidate, r.key.reference,
                                  name_of(r.outcome), r.reason.empty() ? "" : " (" + r.reason + ")",
                                  wq::text_of(r.standing)),
                      {{"WQ_NAME", r.target},
                       {"WQ_ARM_REFERENCE", r.key.reference},
                       {"WQ_ARM_CANDIDATE", r.key.candidate},
                       {"WQ_VERDICT", std::string(name_of(r.outcome))},
                       {"WQ_REASON", r.reason},
                       {"WQ_COUNTER", r.standing.counter},
                       {"WQ_PAIRS", std::to_string(r.standing.pairs)},
                       {"WQ_EFFECT_PERCENT", fmt::format("{:.2f}", r.standing.effect.percent)}}});
}

// Reports that the ordered comparison ended without a verdict, and ends the order.
void Experiment::give_up(const Member& member, const std::string& why) {
    VerdictRecord record = record_so_far(member);
    record.judged = false;
    record.reason = why;
    keep(std::move(record), member.key.text());
    orders_.erase(member.taker.name);
}

// An order ends with a verdict, or after max_pairs pairs. Pairs of all targets with the same comparison
// count, because these targets take turns.
void Experiment::count_orders(const Member& member, const std::optional<VerdictRecord>& verdict) {
    for (auto& [name, order] : std::map(orders_)) {
        const bool own = name == member.taker.name;
        if ((own && !member.taker.by_hand) || !edges_.engine.targets().contains(name)) continue;
        const Member ordered = member_of(name, order);
        if (ordered.key != member.key) continue;
        const bool ended = ++orders_.at(name).pairs >= edges_.engine.policy().judge.settings.max_pairs;
        if (!verdict && !ended) continue;
        orders_.erase(name);
        if (verdict && own) continue;  // turned() reported it
        VerdictRecord record = verdict.value_or(record_so_far(ordered));
        // Without a new decision, the record has the earlier one.
        if (!verdict) record.outcome = entry_of(ordered).judgement;
        record.target = name;
        record.key = ordered.record_key;
        if (record.outcome == Judgement::undecided) record.reason = kMaxPairsReason;
        keep(std::move(record), ordered.key.text());
    }
}

}  // namespace wq
