// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/bookkeeper.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "counters/counter_table.h"
#include "plan/plan.h"

namespace wq {
namespace {

constexpr std::uint64_t kHour = 3600 * kSecond;
constexpr std::uint64_t kDay = 24 * kHour;
constexpr std::uint64_t kMostStuck = 20;  // at most one item in 20
constexpr unsigned kMostStarved = 2;      // consecutive pairs
constexpr double kClearGain = -10;  // percent: the watch slows down while the whole interval is below it

// The largest extra cost of SIDE in PAIR, of all judged counters, as a difference of logarithms; or 0.
double extra_cost(const LedgerEntry& before, const PairEvidence& pair, Side side) {
    double out = 0;
    for (std::size_t i = 0; i < std::min(pair.values.size(), before.columns.size()); i++) {
        const Comparison::Column& column = before.columns[i];
        if (column.counter.guard) continue;
        const double d = pair.values[i] ? log_ratio(column.counter, *pair.values[i]) : 0;
        if (!pair.lost) out = std::max(out, side == Side::candidate ? d : -d);
        if (pair.lost == side) out = std::max(out, column.cost_of_lost_window());
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

// The pause until the next pair of a watch. While the kept arm is clearly better, it doubles, up to a day,
// but only after there are the pairs that tell what the arm is worth. A pair that does not agree ends that.
std::uint64_t pause_after(std::uint64_t pause, const LedgerEntry& before, const LedgerEntry& entry,
                          std::uint64_t recheck) {
    const auto interval = Comparison(entry.columns).effect(0).interval;
    const Comparison::Column& first = entry.columns.front();
    const bool agrees = first.worse.count > before.columns.front().worse.count && first.last.back() < 0;
    const bool measured = !entry.after.empty() && entry.after.front().pairs >= kLeastForMean;
    const bool clear = agrees && measured && interval && interval->high < kClearGain;
    return clear ? std::min(2 * std::max(pause, recheck), std::max(kDay, recheck)) : recheck;
}

// A kept arm that another one improved on is no longer in force: what it is worth begins anew if it returns.
void leave_reference(LedgerFile& ledger, const Targets& targets, const Taker& taker) {
    const Target& target = targets.all().at(taker.name);
    const auto& watch = target.step.watch;
    if (!watch || watch->candidate != taker.arms.reference) return;
    const LedgerEntry* known = ledger.ledger().find(targets.keys().ledger_key(target.now, *watch, false));
    if (known == nullptr || known->after.empty()) return;
    LedgerEntry entry = *known;
    entry.after.clear();
    ledger.put(std::move(entry));
}

// Whether the candidate is in force and may be taken back: no rule keeps it whatever the evidence says.
bool may_be_taken_back(const Targets& targets, const Taker& taker) {
    const ScopeWish* wish = wish_for(targets.all().at(taker.name).now, targets.policy());
    return taker.candidate_holds && (wish == nullptr || !wish->hold);
}

std::string text_of(const Arms& arms) {
    return fmt::format("{} against {}", arms.candidate.name(), arms.reference.name());
}

LogLine line_of(int priority, Event event, const std::string& target, const std::string& reference,
                const std::string& candidate, const std::string& text) {
    return {priority,
            event,
            target + ": " + text,
            {{"WQ_NAME", target}, {"WQ_ARM_REFERENCE", reference}, {"WQ_ARM_CANDIDATE", candidate}}};
}

// Keeps what the windows of MEMBER showed beside what is compared.
void see(const Member& member, const PairResult& result, WorkSeen& seen, LedgerEntry& entry) {
    if (!member.pair->counts_work() || !result.counted) return;
    const unsigned candidate = member.candidate_first ? 0 : 1;
    seen.add(result.counts.at(1 - candidate), result.counts.at(candidate));
    for (const WorkCount& count : result.counts)
        if (!std::isnan(count.lock))
            entry.lowest_lock = std::min(entry.lowest_lock.value_or(count.lock), count.lock);
}

// A field of a verdict for each arm; "" if it is not known.
template <class T>
void add_fields(LogLine& line, const std::string& name, const VerdictRecord& record,
                std::optional<T> ArmWork::*value) {
    const Contention known = record.contention.value_or(Contention());
    for (const auto& [arm, work] :
         {std::pair("REFERENCE", &known.reference), {"CANDIDATE", &known.candidate}})
        line.fields.emplace_back(
            fmt::format("WQ_{}_{}", name, arm),
            work->*value ? fmt::format("{:.4g}", static_cast<double>(*(work->*value))) : "");
}

}  // namespace

std::optional<Contention> contention_of(const OrderBook& book, const Ledger& ledger, const Taker& taker) {
    const auto& all = book.of(taker.name).seen;
    const auto found = all.find(taker.arms.key());
    if (found == all.end()) return {};
    return found->second.above(ledger.lowest_lock(taker.key));
}

Bookkeeper::Bookkeeper(const ExperimentEdges& edges) : edges_(edges) {
    ledger_.load();
    edges_.verdicts.complete(ledger_.ledger());
    const auto coins = coins_file(edges_.paths.slot()).read();
    if (!coins) {  // the next slot replaces the file
        edges_.log.write({LOG_WARNING, Event::none, coins.error().in("a slot that was cut off").text});
        return;
    }
    if (*coins && (*coins)->running && !ledger_.has((*coins)->slot)) count_cut_off(**coins);
    // Last: a kill before it counts the windows at the next start, and not twice, because the slot is kept.
    (void)coins_file(edges_.paths.slot()).remove();
}

// The windows that a kill cut off.
void Bookkeeper::count_cut_off(const Coins& coins) {
    const auto& entries = ledger_.ledger().entries();
    for (const Coins::Member& member : coins.members)
        if (const auto found = entries.find(member.comparison); found != entries.end())
            lose_window(found->second, side_in(*coins.running, member.candidate_first));
    ledger_.keep(coins.slot);
}

ExperimentTotals Bookkeeper::totals() const {
    ExperimentTotals out = totals_;
    out.lost_today = book_.lost(edges_.clock.wall());
    return out;
}

LedgerEntry Bookkeeper::entry_of(const LedgerKey& key) const {
    if (const LedgerEntry* known = ledger_.ledger().find(key); known != nullptr) return *known;
    LedgerEntry out;
    out.key = key;
    out.columns = Comparison(edges_.targets.keys().measures().counters).columns();
    return out;
}

void Bookkeeper::lose_window(const LedgerEntry& known, Side side) {
    LedgerEntry entry = known;
    add_lost_window(entry, side);
    entry.updated = edges_.clock.wall();
    totals_.windows_lost++;
    ledger_.put(std::move(entry));
}

// Logs the begin of each comparison of a target once.
void Bookkeeper::begun(const std::vector<Member>& members) {
    totals_.slots++;
    const std::uint64_t now = edges_.clock.now();  // the same for all: those of one slot wait equally long
    for (const Member& member : members) {
        const Taker& taker = member.taker;
        Notes& notes = book_.of(taker.name);
        notes.turns.served = now;
        if (!notes.said.insert(taker.key.text()).second) continue;
        say(LOG_INFO, Event::comparison_begun, taker,
            fmt::format("{} is compared with {}", taker.arms.candidate.name(), taker.arms.reference.name()));
    }
}

// A transient error is logged only if the comparison was ordered, and any other one if it is new.
void Bookkeeper::cannot_begin(const Member& member, const Error& why) {
    const Taker& taker = member.taker;
    const bool passes = kind_of_error(why.code) == Outcome::Kind::transient;
    book_.put_off(taker.name, taker.arms, why.text, edges_.clock.now());
    const bool news = !passes && std::exchange(said_, why.text) != why.text;
    if (news || taker.by_hand)
        edges_.log.write({LOG_NOTICE, Event::none, "no slot could begin: " + why.text});
    if (!taker.by_hand) return;
    give_up(member, why.text);
    write();
}

void Bookkeeper::left(const SlotRun::Left& left) {
    const Member& member = *left.member;
    const Taker& taker = member.taker;
    totals_.cut_off++;
    // A new entry gets the counters of the policy in force, which may be another one now.
    if (left.ours && member.in_place &&
        (ledger_.ledger().find(taker.key) || taker.key.counters == edges_.targets.keys().counters()))
        lose_window(entry_of(taker.key), member.side(*member.in_place));
    if (taker.by_hand)
        give_up(member, left.why);
    else
        book_.put_off(taker.name, taker.arms, left.why, edges_.clock.now());
    say(LOG_INFO, Event::comparison_cut_off, taker, text_of(taker.arms) + ": cut off: " + left.why, left.why);
}

void Bookkeeper::take(const SlotRun::Done& done, const SlotTimes& times) {
    const Member& member = *done.member;
    const PairResult& result = done.result;
    Notes& notes = book_.of(member.taker.name);
    const std::uint64_t now = edges_.clock.now();
    if (member.pair->counts_work() && result.counted) {
        notes.load.expected =
            static_cast<double>(result.items) * 1e6 / static_cast<double>(2 * times.counted());
        notes.load.rate = notes.load.expected;
        notes.load.rate_at = now;
    }
    if (member.taker.course == Course::watched)
        notes.turns.next_watch = now + std::max(notes.turns.pause, us(judge().recheck));
    else
        notes.turns.next_sparse = now + us(judge().recheck);
    if (is_stuck(member, result)) return;
    PairEvidence evidence{by_arm(result, member.candidate_first), {}};
    const auto& counters = edges_.targets.keys().measures().counters;
    for (std::size_t i = 0; i < counters.size(); i++)
        if (counters[i].name == kOthers)
            evidence.values[i] = others_by_arm(done.others, member.candidate_first);
    if (result.lost) evidence.lost = member.side(*result.lost);
    // Half of lead and drain: only the second window's arm is in place then.
    if (result.drop != kTooFewItems)
        pay(member, evidence, static_cast<double>(2 * times.window + times.lead + times.drain) / 2e6);
    if (!result.drop.empty()) return drop(member, result.drop);
    use(done, evidence);
}

// Adds the time that a pair cost, also a dropped one. A candidate that has not improved may cost time; while
// it is in force, the reference may, too.
void Bookkeeper::pay(const Member& member, const PairEvidence& pair, double in_place) {
    const Taker& taker = member.taker;
    LostTime& lost = book_.of(taker.name).lost;
    const LedgerEntry before = entry_of(taker.key);
    const std::int64_t wall = edges_.clock.wall();
    const bool spent = book_.is_spent(taker.name, wall, judge());
    if (taker.course != Course::watched)
        lost.add(wall / 86'400, extra_cost(before, pair, Side::candidate), in_place);
    if (taker.candidate_holds) lost.add(wall / 86'400, extra_cost(before, pair, Side::reference), in_place);
    // What was set first may go back.
    if (!spent && book_.is_spent(taker.name, wall, judge())) turned_ = true;
}

// Work that queues itself again stays on its pool. A scope that is written now does not reach it.
bool Bookkeeper::is_stuck(const Member& member, const PairResult& result) {
    const Taker& taker = member.taker;
    auto& sums = book_.of(taker.name).streaks;
    sums.items += result.items - sums.items / 8;
    sums.stuck += result.stuck - sums.stuck / 8;
    if (sums.stuck * kMostStuck <= sums.items || sums.items / 2 < judge().settings.min_items) return false;
    sums.items = sums.stuck = 0;
    if (taker.course == Course::watched) {  // goes on: the arm in force can still become worse
        drop(member, kStuckReason);
        return true;
    }
    totals_.pairs_dropped++;
    totals_.undecided++;
    rest(member, us(judge().retry_after), kStuckReason);
    VerdictRecord record = record_of(member, {}, {}, entry_of(taker.key).alarms + 1);
    record.reason = kStuckReason;
    keep(std::move(record));
    if (taker.by_hand) book_.orders.erase(taker.name);
    return true;
}

// A watch never rests. If it gets no pairs, this is logged once.
void Bookkeeper::drop(const Member& member, const std::string& why) {
    constexpr unsigned kMost = OrderBook::kMostDropped;
    totals_.pairs_dropped++;
    const Taker& taker = member.taker;
    const bool watched = taker.course == Course::watched;
    auto& streaks = book_.of(taker.name).streaks;
    if (++(watched ? streaks.missed : streaks.dropped) != kMost) return;
    const std::string text = fmt::format("{} consecutive pairs were dropped: {}", kMost, why);
    if (watched)
        return say(LOG_NOTICE, Event::none, taker,
                   fmt::format("the watch of {} gets no data: {}", taker.arms.candidate.name(), text), why);
    streaks.dropped = 0;
    rest(member, kHour, text);
    if (taker.by_hand) give_up(member, why);
}

void Bookkeeper::use(const SlotRun::Done& done, const PairEvidence& evidence) {
    const Member& member = *done.member;
    const Taker& taker = member.taker;
    const bool watched = taker.course == Course::watched;
    Notes& notes = book_.of(taker.name);
    const LedgerEntry before = entry_of(taker.key);
    LedgerEntry entry = before;
    if (!evidence.lost)
        if (const std::string why = Comparison(entry.columns).why_refused(evidence.values); !why.empty())
            return drop(member, why);
    if (!evidence.lost) see(member, done.result, notes.seen[taker.arms.key()], entry);
    const Accrual accrual =
        accrue(entry, evidence,
               {judge().settings.alpha, taker.candidates, judge().settings.max_pairs, judge().run_length,
                may_be_taken_back(edges_.targets, taker), edges_.clock.wall()});
    (watched ? notes.streaks.missed : notes.streaks.dropped) = 0;
    notes.aside.failures = 0;
    totals_.pairs++;
    if (evidence.lost) totals_.windows_lost++;
    ledger_.put(entry);
    if (watched) {
        notes.turns.pause = pause_after(notes.turns.pause, before, entry, us(judge().recheck));
        notes.turns.next_watch = edges_.clock.now() + notes.turns.pause;
    } else if (accrual.turn == Turn::none || accrual.turn == Turn::undecided) {
        be_cautious(member, before, evidence);
    }
    if (accrual.turn != Turn::none) turn(member, entry, accrual);
    count_order(member, accrual.turn != Turn::none);
}

// Sets the candidate aside for an hour, without a verdict.
void Bookkeeper::be_cautious(const Member& member, const LedgerEntry& before, const PairEvidence& evidence) {
    unsigned& starved = book_.of(member.taker.name).streaks.starved[member.taker.arms.key()];
    const bool cut = evidence.lost == Side::candidate && member.pair->is_cut(member.candidate_first ? 0 : 1);
    starved = cut ? starved + 1 : 0;
    std::string why;
    if (starved >= kMostStarved)
        why = "in two consecutive pairs its work completed at less than a third of the expected rate";
    else if (costs_too_much(before, evidence))
        why = "its cost was more than three times the reference's, more than noise explains";
    if (why.empty()) return;
    starved = 0;
    rest(member, kHour, why, true);
    if (member.taker.by_hand) give_up(member, why);
}

void Bookkeeper::rest(const Member& member, std::uint64_t time, const std::string& why, bool suspect) {
    const Taker& taker = member.taker;
    book_.of(taker.name).aside.rests[taker.arms.key()] = {edges_.clock.now() + time, why, suspect};
    totals_.rests++;
    turned_ = true;
    const bool is_news = book_.of(taker.name).said.insert(taker.key.text() + why).second;
    say(is_news ? LOG_NOTICE : LOG_DEBUG, Event::none, taker,
        fmt::format("the comparison of {} with {} is paused for {}: {}", taker.arms.candidate.name(),
                    taker.arms.reference.name(), rough_time(time / kSecond), why),
        why);
}

void Bookkeeper::turn(const Member& member, const LedgerEntry& entry, const Accrual& accrual) {
    turned_ = true;
    const bool taken_back = accrual.turn == Turn::taken_back;
    // If the watch took the candidate back, the entry already belongs to the next comparison.
    VerdictRecord record = record_of(member, accrual.decision, accrual.columns,
                                     taken_back ? std::max(entry.alarms, 1U) : entry.alarms + 1);
    if (accrual.turn == Turn::improved) {
        totals_.improved++;
        leave_reference(ledger_, edges_.targets, member.taker);
    }
    if (accrual.turn == Turn::regressed || taken_back) totals_.regressed++;
    if (accrual.turn == Turn::undecided) {
        totals_.undecided++;
        record.reason = kMaxPairsReason;
        if (const std::string& veto = accrual.decision.veto; !veto.empty())
            record.reason += fmt::format("; not kept, because {} is worse", veto);
    }
    if (taken_back && may_be_taken_back(edges_.targets, member.taker)) {
        totals_.taken_back++;
        // An alarm began the evidence anew.
        const bool by_watch = pairs_of(entry) == 0 || member.taker.course == Course::watched;
        record.reason = by_watch ? kWatchReason : kSetFirstReason;
    }
    auto& turns = book_.of(member.taker.name).turns;
    turns.next_watch = turns.pause = 0;  // what is in force may be another arm
    LedgerEntry numbered = entry;
    numbered.number = keep(std::move(record));
    ledger_.put(std::move(numbered));
}

VerdictRecord Bookkeeper::record_of(const Member& member, const Decision& decision,
                                    const std::vector<Comparison::Column>& columns, unsigned number) const {
    VerdictRecord out;
    out.key = member.taker.key;
    out.cpus = member.cpus;
    out.target = member.taker.name;
    out.time = edges_.clock.wall();
    out.comparison = number;
    out.outcome = decision.judgement;
    out.standing = standing_of(decision, columns);
    out.differences = differences_of(columns);
    out.contention = contention_of(std::as_const(book_), ledger_.ledger(), member.taker);
    out.settings = judge().settings;
    out.settings.alpha = alpha_after(out.settings.alpha, number - 1);
    return out;
}

VerdictRecord Bookkeeper::record_so_far(const Member& member) const {
    if (!edges_.targets.keys().measures().can_judge())
        return record_of(member, {}, {}, 1);  // an entry would have only guards
    const LedgerEntry entry = entry_of(member.taker.key);
    const Decision decision = decision_of(entry, judge().settings.alpha, member.taker.candidates);
    return record_of(member, decision, entry.columns, entry.alarms + 1);
}

// Adds RECORD to the history at once. The journal and the disk get it after the slot.
std::uint64_t Bookkeeper::keep(VerdictRecord record) {
    to_write_.push_back(record);
    return edges_.verdicts.add(std::move(record));
}

void Bookkeeper::give_up(const Member& member, const std::string& why) {
    VerdictRecord record = record_so_far(member);
    record.judged = false;
    record.reason = why;
    keep(std::move(record));
    book_.orders.erase(member.taker.name);
}

// An order ends with a verdict, which turn() reported, or after max_pairs pairs.
void Bookkeeper::count_order(const Member& member, bool decided) {
    const auto order = book_.orders.find(member.taker.name);
    if (!member.taker.by_hand || order == book_.orders.end()) return;
    if (++order->second.pairs < judge().settings.max_pairs && !decided) return;
    book_.orders.erase(order);
    if (decided) return;
    VerdictRecord record = record_so_far(member);
    record.outcome = entry_of(member.taker.key).judgement;  // without a new decision, the earlier one
    if (record.outcome == Judgement::undecided) record.reason = kMaxPairsReason;
    keep(std::move(record));
}

void Bookkeeper::write() {
    if (to_write_.empty()) return;
    for (const VerdictRecord& r : std::exchange(to_write_, {})) {
        const bool notable = r.judged && r.outcome != Judgement::undecided;
        LogLine line = line_of(
            notable ? LOG_NOTICE : LOG_INFO, r.judged ? Event::verdict : Event::comparison_cut_off, r.target,
            r.key.reference, r.key.candidate,
            fmt::format("{} against {}: {}{}: {}{}", r.key.candidate, r.key.reference, name_of(r.outcome),
                        r.reason.empty() ? "" : " (" + r.reason + ")", wq::text_of(r.standing),
                        r.contention ? "; " + wq::text_of(*r.contention) : ""));
        line.fields.insert(line.fields.end(),
                           {{"WQ_VERDICT", std::string(name_of(r.outcome))},
                            {"WQ_REASON", r.reason},
                            {"WQ_COUNTER", r.standing.counter},
                            {"WQ_PAIRS", std::to_string(r.standing.pairs)},
                            {"WQ_EFFECT_PERCENT", fmt::format("{:.2f}", r.standing.effect.percent)}});
        add_fields(line, "LOCK_PERCENT", r, &ArmWork::lock_percent);
        add_fields(line, "POOLS", r, &ArmWork::pools);
        add_fields(line, "WORKERS", r, &ArmWork::workers);
        edges_.log.write(line);
    }
    edges_.verdicts.save(edges_.record, edges_.log);
    ledger_.save(edges_.clock.now());
}

void Bookkeeper::say(int priority, Event event, const Taker& taker, const std::string& text,
                     const std::optional<std::string>& why) {
    LogLine line =
        line_of(priority, event, taker.name, taker.arms.reference.name(), taker.arms.candidate.name(), text);
    if (why) line.fields.emplace_back("WQ_REASON", *why);
    edges_.log.write(line);
}

}  // namespace wq
