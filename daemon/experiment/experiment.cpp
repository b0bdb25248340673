// SPDX-License-Identifier: LGPL-2.1-or-later
// Which targets take part, and when. The running slot is in experiment_slot.cpp, the result of a pair in
// experiment_pair.cpp.
#include "experiment/experiment.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "counters/counter_table.h"
#include "machine/isolation.h"
#include "targets/candidates.h"
#include "targets/keys.h"

namespace wq {
namespace {

constexpr std::uint64_t kLookTime = 5 * kSecond;  // between two looks at the traffic
constexpr std::uint64_t kFreshRate = 12 * kSecond;
constexpr std::uint64_t kFactsTime = 60 * kSecond;
constexpr std::uint64_t kSystemTime = 600 * kSecond;  // once systemd has started, its state seldom changes
constexpr std::size_t kMostSaid = 100;

bool any_work_counter(const std::vector<JudgedCounter>& counters) {
    return std::ranges::any_of(counters, [](const auto& c) { return is_work_counter(c.name); });
}

}  // namespace

Experiment::Experiment(Edges edges)
    : edges_(std::move(edges)), ledger_(edges_.paths.ledger(), edges_.record, edges_.log) {
    ledger_.load();
    recover();
}

Experiment::~Experiment() {
    edges_.counters.detach();
}

// The window that ran when the daemon was killed counts against its arm, once.
void Experiment::recover() {
    const auto coins = take_coins(edges_.paths.slot());
    if (!coins)
        return edges_.log.write({LOG_WARNING, Event::none, coins.error().in("a slot that was cut off").text});
    if (!*coins || !(*coins)->running) return;
    for (const Coins::Member& member : (*coins)->members) {
        const auto found = ledger_.ledger().entries().find(member.comparison);
        if (found == ledger_.ledger().entries().end()) continue;
        LedgerEntry entry = found->second;
        add_lost_window(entry, (*coins)->side_of(member));
        entry.updated = edges_.wall();
        totals_.windows_lost++;
        ledger_.change().put(std::move(entry));
    }
}

void Experiment::measure_by(const std::string& lacks) {
    if (ledger_.ledger().lacks != lacks) ledger_.change().lacks = lacks;
    edges_.engine.measure_by(measures_of(edges_.engine.policy().judge, no_counters_.empty(), lacks,
                                         scheduler_in_force(edges_.paths)));
    waiting_.unjudged = why_unjudged();
}

void Experiment::policy_changed() {
    no_counters_.clear();
    said_.clear();
    for (auto& [name, notes] : notes_) {
        notes.rests.clear();
        notes.failures = 0;
        notes.not_before = 0;
    }
    const Judging& judge = edges_.engine.policy().judge;
    measure_by(ledger_.ledger().lacks);
    // The counters are part of a comparison's key. Whether work can be counted must be known before the first
    // look.
    if (any_work_counter(judge.counters) &&
        !std::ranges::all_of(judge.counters, is_work_counter, &JudgedCounter::name))
        if (auto traffic = edges_.counters.traffic(); !traffic && !passes(traffic.error().code))
            no_counters(traffic.error());
    edges_.engine.name_only(read_named_only(edges_.paths));
    find_before_upgrade();
    if (judge.jitter != jitter_) draw_delay();
    jitter_ = judge.jitter;
    look_at_.reset();
}

// An arm that was kept for a class under an older kernel is the first candidate under this one.
void Experiment::find_before_upgrade() {
    const std::string kernel = edges_.engine.keys().ledger_key({}, {}, false).kernel;
    std::map<std::string, std::int64_t> latest;
    for (const auto& [text, entry] : ledger_.ledger().entries()) {
        const LedgerKey& key = entry.key;
        if (entry.judgement != Judgement::improved || key.kernel == kernel ||
            entry.updated < latest[key.kind])
            continue;
        latest[key.kind] = entry.updated;
        before_upgrade_[key.kind] = key.candidate;
    }
}

// Draws a random delay, so that hosts of a fleet do not begin at the same time if they start, or their hours
// begin, at the same time.
void Experiment::draw_delay() {
    const std::uint64_t most = us(edges_.engine.policy().judge.jitter);
    not_before_ = edges_.now() + (most == 0 ? 0 : edges_.random() % most);
}

// Work is not counted until a reload. The counters that are left make comparisons with other keys.
void Experiment::no_counters(const Error& why) {
    no_counters_ = why.text;
    edges_.log.write({LOG_NOTICE, Event::none, "work is not counted: " + no_counters_});
    measure_by("work is not counted");
}

Step Experiment::step(const StepInput& in) const {
    const Ledger& ledger = ledger_.ledger();
    const std::string kind = class_of(in.target.name);
    const auto previous = before_upgrade_.find(kind);
    return next_step(in,
                     {ledger.knows(kind) ? [&](const LedgerKey& key) { return ledger.find(key); }
                                         : std::function<const LedgerEntry*(const LedgerKey&)>(),
                      [&](const Arms& arms) { return rest_of(in.target.name, arms); },
                      previous == before_upgrade_.end() ? "" : previous->second, is_spent(in.target.name)});
}

// Asks the firmware and systemd only now and then, because that takes time.
void Experiment::refresh_facts() {
    memory_is_short_ = is_memory_short(edges_.paths);
    if (scheduler_in_force(edges_.paths) != edges_.engine.keys().measures().scheduler) {
        measure_by(
            edges_.engine.keys().measures().lacks);  // evidence is used only under the scheduler it is from
        edges_.engine.step_all();
    }
    const std::uint64_t now = edges_.now();
    if (facts_at_ != 0 && now - facts_at_ < kFactsTime) return;
    facts_at_ = now;
    on_battery_ = is_on_battery(edges_.paths);
    const bool settled = system_state_ == "running" || system_state_ == "degraded";
    if (!edges_.system_state || (settled && now - asked_system_at_ < kSystemTime)) return;
    asked_system_at_ = now;
    system_state_ = edges_.system_state();
}

std::string Experiment::why_no_slot() const {
    const Judging& judge = edges_.engine.policy().judge;
    const std::uint64_t now = edges_.now();
    return wq::why_no_slot({.observing = edges_.engine.observing(),
                            .pods_unknown = edges_.engine.inventory().pods_unknown(),
                            .ledger_error = ledger_.why_not(now),
                            .paused = paused_,
                            .in_hours = judge.hours.contains(edges_.minute_of_day()),
                            .system_state = system_state_,
                            .uptime = edges_.uptime(),
                            .settle = judge.settle,
                            .delay = now < not_before_ ? (not_before_ - now) / kSecond + 1 : 0,
                            .memory_is_short = memory_is_short_,
                            .on_battery = on_battery_,
                            .hotplug = now < hotplug_until_});
}

ArmRest Experiment::rest_of(const std::string& name, const Arms& arms) const {
    const auto notes = notes_.find(name);
    if (notes == notes_.end()) return {};
    const auto rest = notes->second.rests.find(arms.key());
    if (rest == notes->second.rests.end() || rest->second.until <= edges_.now()) return {};
    return {rest->second.why, rest->second.suspect};
}

// Why no pair of TARGET is measured now, for any arms.
std::string Experiment::why_not(const Target& target) const {
    const Holder holder = edges_.engine.ownership().holder_of(target);
    if (target.unread) return "cannot be read now";
    if (holder == Holder::external) return "external";
    if (is_order(holder)) return "held by an operator's order";
    if (const auto found = notes_.find(target.now.name); found != notes_.end()) {
        const Notes& notes = found->second;
        if (edges_.now() < notes.not_before) return "its last slot gave no result: " + notes.why;
        if (is_spent(target.now.name)) return "its judge.budget for today is used up";
    }
    switch (target.state) {
        case State::waiting:
        case State::comparing:
        case State::set:
        case State::kept:
        case State::reverted:
        case State::as_planned:
            return "";
        default:
            return target.reason;
    }
}

bool Experiment::is_spent(const std::string& name) const {
    const auto notes = notes_.find(name);
    const auto budget = static_cast<double>(edges_.engine.policy().judge.budget.count());
    return notes != notes_.end() && notes->second.lost.on(edges_.wall() / 86'400) >= budget;
}

// An arm with the word `default` means the scope that @default holds. If that is not the scope by which the
// arm is named, a pair would measure something else than its name says.
bool Experiment::means_another(const Arms& arms) const {
    const auto parameter = edges_.engine.targets().find(kDefaultTarget);
    if (parameter == edges_.engine.targets().end() || parameter->second.in_slot) return false;
    const auto now = parameter->second.now.scope.effective;
    const auto moved = [&](const Arm& arm) { return arm.word == "default" && now && arm.scope != *now; };
    return moved(arms.reference) || moved(arms.candidate);
}

bool Experiment::in_doubt(const Target& target, const Arms& arms) const {
    const LedgerEntry* entry =
        ledger_.ledger().find(edges_.engine.keys().ledger_key(target.now, arms, false));
    return entry != nullptr && watch_log(*entry) > std::log(kDoubt);
}

std::vector<Experiment::Taker> Experiment::takers() const {
    std::vector<Taker> out;
    for (const auto& item : edges_.engine.targets()) {
        const std::string& name = item.first;
        const Target& target = item.second;
        const Step& step = target.step;
        const auto order = orders_.find(name);
        if (!step.next && !step.watch && order == orders_.end()) continue;
        const auto found = notes_.find(name);
        const Notes none;
        const Notes& notes = found == notes_.end() ? none : found->second;
        Taker taker;
        taker.name = name;
        taker.candidates = step.candidates;
        taker.served = notes.served;
        const auto add = [&](const Arms& arms, Course course, bool by_hand, std::uint64_t due) {
            if (target.refuses(arms.candidate.word) || means_another(arms)) return;
            taker.arms = arms;
            taker.course = course;
            taker.by_hand = by_hand;
            taker.due = due;
            taker.candidate_holds = step.holds(arms.candidate);
            taker.from_policy = step.holds(arms.reference);
            out.push_back(taker);
        };
        if (order != orders_.end()) {
            add(order->second.arms, Course::dense, true, 0);
            continue;
        }
        if (!why_not(target).empty()) continue;
        if (step.next && step.course == Course::dense) add(*step.next, step.course, false, 0);
        if (step.next && step.course == Course::sparse)
            add(*step.next, step.course, false, in_doubt(target, *step.next) ? 0 : notes.next_sparse);
        const bool at_once = step.watch && notes.missed < kMostDropped && in_doubt(target, *step.watch);
        if (step.watch) add(*step.watch, Course::watched, false, at_once ? 0 : notes.next_watch);
    }
    return out;
}

std::optional<std::uint64_t> Experiment::next_due(const std::vector<Taker>& takers) const {
    std::optional<std::uint64_t> out;
    for (const Taker& taker : takers) out = std::min(out.value_or(UINT64_MAX), taker.due);
    return out;
}

bool Experiment::is_busy(const std::string& name) const {
    if (!no_counters_.empty()) return true;
    const Judging& judge = edges_.engine.policy().judge;
    const auto notes = notes_.find(name);
    if (notes == notes_.end() || edges_.now() - notes->second.rate_at > kFreshRate) return false;
    const double counted = std::chrono::duration<double>(judge.window - judge.washout).count();
    return notes->second.rate * counted >= static_cast<double>(judge.settings.min_items);
}

// Returns whether rates are known now: a rate needs two looks. Error: nothing can be measured.
Result<bool> Experiment::look_at_traffic() {
    if (no_counters_.empty()) {
        const std::uint64_t now = edges_.now();
        auto traffic = edges_.counters.traffic();
        if (!traffic && passes(traffic.error().code)) return tl::unexpected(traffic.error());
        if (!traffic) no_counters(traffic.error());
        if (traffic) {
            const std::uint64_t passed = now - traffic_at_;
            const bool fresh = traffic_at_ > 0 && passed >= kSecond && passed <= kFreshRate;
            std::map<std::string, std::uint64_t> seen;
            for (const auto& [name, one] : *traffic) {
                seen[name] = one.completed;
                const auto before = traffic_.find(name);
                if (!fresh || before == traffic_.end() || !edges_.engine.targets().contains(name)) continue;
                Notes& notes = notes_[name];
                // What a slot counted since the last look is better: its writes reset the kernel's counts to
                // zero.
                if (notes.rate_at > traffic_at_) continue;
                const std::uint64_t more =
                    one.completed >= before->second ? one.completed - before->second : one.completed;
                notes.rate = static_cast<double>(more) * kSecond / static_cast<double>(passed);
                notes.rate_at = now;
            }
            traffic_ = std::move(seen);
            traffic_at_ = now;
            return fresh;
        }
    }
    if (const std::string why = why_unjudged(); !why.empty()) return fail(why);
    return true;
}

// Guards alone decide nothing. If the first counter is a guard, there are only guards.
std::string Experiment::why_unjudged() const {
    const auto& counters = edges_.engine.keys().measures().counters;
    return counters.empty() || counters.front().guard ? "no counter can be measured: " + no_counters_ : "";
}

void Experiment::explain(const std::string& why) {
    waiting_.why = "waiting: " + why;
}

// No slot begins: detaches the counters and releases the memory.
void Experiment::idle() {
    waiting_.compared.clear();
    edges_.counters.detach();
    attached_.clear();
    if (held_ && edges_.hold_memory) edges_.hold_memory(false);
    held_ = false;
}

// Returns either all targets that may share a slot, or one target that must be alone in its slot: whichever
// waited longer. Orders come first.
std::vector<Experiment::Taker> Experiment::choose(std::vector<Taker> ready) const {
    std::ranges::stable_sort(ready, [](const Taker& a, const Taker& b) {
        return a.by_hand != b.by_hand ? a.by_hand : a.served < b.served;
    });
    const auto is_alone = [](const Taker& t) {
        return t.name == kDefaultTarget || t.course == Course::watched;
    };
    std::vector<Taker> group;
    std::set<std::string> names;
    std::set<std::string> comparisons;
    bool dense = false;
    for (const Taker& taker : ready) {
        if (is_alone(taker) || names.contains(taker.name)) continue;
        // Only one target per comparison. If two targets disturb each other, the coin of one influences the
        // difference of the other, and both differences would be evidence in the same comparison.
        const Target& target = edges_.engine.targets().at(taker.name);
        if (!comparisons
                 .insert(edges_.engine.keys().ledger_key(target.now, taker.arms, taker.from_policy).text())
                 .second)
            continue;
        names.insert(taker.name);
        group.push_back(taker);
        dense = dense || taker.course == Course::dense;
    }
    const Taker* alone = nullptr;
    for (const Taker& taker : ready)
        if (is_alone(taker) && alone == nullptr &&
            !(taker.name == kDefaultTarget && taker.course == Course::dense && dense && !taker.by_hand))
            alone = &taker;
    if (alone == nullptr) return group;
    const bool first = group.empty() || (alone->by_hand && !group.front().by_hand) ||
                       (alone->by_hand == group.front().by_hand && alone->served <= group.front().served);
    return first ? std::vector{*alone} : group;
}

void Experiment::look() {
    look_at_.reset();
    if (slot_) return;
    refresh_facts();
    const std::string why = why_no_slot();
    auto all = takers();
    // These reasons do not stop orders. What makes the pair of an order impossible is checked below and in
    // Engine::may_try().
    const bool only_orders = !why.empty();
    if (only_orders) std::erase_if(all, [](const Taker& t) { return !t.by_hand; });
    if (only_orders) explain(why);
    const auto due = next_due(all);
    const std::uint64_t now = edges_.now();
    // An order waits for the ledger's disk, too: its result could not be saved.
    if (!due || !edges_.engine.observing().empty() || !ledger_.why_not(now).empty()) return idle();
    if (*due > now + kLookTime) {
        idle();
        look_at_ = *due - kLookTime;
        return;
    }
    const auto known = look_at_traffic();
    if (!known) {
        explain(known.error().text);
        check_orders();
        return idle();
    }
    look_at_ = now + kLookTime;
    if (!*known) return;
    waiting_.compared.clear();
    std::vector<Taker> ready;
    for (const Taker& taker : all) {
        if (!taker.by_hand && !is_busy(taker.name)) continue;
        if (taker.course == Course::dense) waiting_.compared.insert(taker.name);
        if (taker.due <= now) ready.push_back(taker);
    }
    if (!only_orders) explain("not busy, or its next pair is not due");
    const bool dense = std::ranges::any_of(all, [](const Taker& t) { return t.course == Course::dense; });
    if (!dense && ready.empty()) look_at_ = now + us(edges_.engine.policy().judge.recheck) / 2;
    if (ready.empty()) return idle();
    begin_slot(choose(std::move(ready)));
}

// A target whose slots give no result (its load stops, its file cannot be written) is skipped for a while,
// twice as long each time, because switching has a cost.
void Experiment::put_off(const std::string& name, const std::string& why) {
    constexpr unsigned kMostDoublings = 11;  // of 10 s: 5.7 hours
    Notes& notes = notes_[name];
    notes.not_before = edges_.now() + ((10 * kSecond) << std::min(notes.failures, kMostDoublings));
    notes.failures++;
    notes.why = why;
}

// A transient error is logged only if the comparison was ordered.
void Experiment::could_not_begin(const Member& member, const Error& why) {
    const Taker& taker = member.taker;
    put_off(taker.name, why.text);
    explain(why.text);
    const bool news = !passes(why.code) && said_.size() < kMostSaid && said_.insert(why.text).second;
    if (news || taker.by_hand)
        edges_.log.write({LOG_NOTICE, Event::none, "no slot could begin: " + why.text});
    if (!taker.by_hand) return;
    give_up(member, why.text);
    if (!slot_) write_verdicts();
}

// What begins to serve swap is left at the next tick.
void Experiment::look_at_swap() {
    auto swap = swap_devices(edges_.paths);
    if (swap == edges_.engine.named_only().swap) return;
    edges_.engine.name_only({edges_.engine.named_only().host, std::move(swap)});
    edges_.engine.step_all();
}

void Experiment::tick() {
    look_at_swap();
    const Judging& judge = edges_.engine.policy().judge;
    const bool in_hours = judge.hours.contains(edges_.minute_of_day());
    if (in_hours && !in_hours_ && judge.hours != Hours{}) draw_delay();
    in_hours_ = in_hours;
    check();
    if (!slot_) ledger_.save_in_time(edges_.now());
    const auto& targets = edges_.engine.targets();
    std::erase_if(notes_, [&](const auto& item) { return !targets.contains(item.first); });
    std::erase_if(orders_, [&](const auto& item) { return !targets.contains(item.first); });
    std::erase_if(begun_,
                  [&](const std::string& one) { return !targets.contains(one.substr(0, one.find('\n'))); });
    if (!slot_ && !look_at_) look();
}

std::optional<std::uint64_t> Experiment::due() const {
    return slot_ ? std::optional(slot_->clock.due()) : look_at_;
}

void Experiment::on_time() {
    const auto when = due();
    if (!when || edges_.now() < *when) return;
    slot_ ? act() : look();
}

void Experiment::cpus_changed() {
    hotplug_until_ = edges_.now() + kLookTime;
    if (slot_ && slot_->spoilt.empty()) slot_->spoilt = "CPUs came or went";
}

// Why no pair of an order on TARGET can be measured, now or later.
std::string Experiment::why_no_order(const Target& target, const Arms& arms) const {
    if (const std::string why = edges_.engine.observing(); !why.empty()) return "nothing is written: " + why;
    if (const Refusal* why = target.refusal_of(arms.candidate.word)) return why->reason;
    return means_another(arms) ? "@default has another scope than this comparison assumes" : "";
}

Status Experiment::order(const std::string& name, const std::string& scope) {
    if (auto may = edges_.engine.may_try(name); !may) return may;
    if (orders_.contains(name)) return fail(name + ": an order compares it already", EBUSY);
    if (const std::string why = ledger_.why_not(edges_.now()); !why.empty())
        return fail(fmt::format("{}: the ledger cannot be written: {}", name, why), EIO);
    if (const std::string why = why_unjudged(); !why.empty()) return fail(name + ": " + why, EOPNOTSUPP);
    edges_.engine.reconcile();
    const auto found = edges_.engine.targets().find(name);
    if (found == edges_.engine.targets().end()) return fail(name + ": vanished", ENOENT);
    const Target& target = found->second;
    const Workqueue before = edges_.engine.ownership().as_before_us(target);
    Arms arms{baseline_arm(before, target.plan), planned_arm(before, target.plan)};
    if (!scope.empty()) {
        const auto wanted = scope_named(scope);
        if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
        if (!edges_.engine.kernel().has(*wanted))
            return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
        arms.candidate = arm_of(target.plan, *wanted);
    } else if (target.step.next) {
        arms = *target.step.next;
    } else if (arms.candidate == arms.reference) {
        return fail(name + ": the planned scope is in force already; name another one with --with", EINVAL);
    }
    // The arm in force is the reference.
    const auto& held = target.step.hold;
    if (held && target.step.holds(*held) && arms.candidate != *held) arms.reference = *held;
    if (const std::string why = why_no_order(target, arms); !why.empty())
        return fail(name + ": " + why, EAGAIN);
    // A suspect stays out of force meanwhile.
    std::erase_if(notes_[name].rests,
                  [&](const auto& one) { return one.first == arms.key() && !one.second.suspect; });
    notes_[name].not_before = 0;
    orders_[name] = {arms};
    if (!slot_) look_at_ = edges_.now();
    return {};
}

double Experiment::lost_today() const {
    double out = 0;
    for (const auto& [name, notes] : notes_) out += notes.lost.on(edges_.wall() / 86'400);
    return out;
}

std::optional<ComparisonView> Experiment::view_of(const std::string& name) const {
    const auto found = edges_.engine.targets().find(name);
    if (found == edges_.engine.targets().end()) return {};
    const Target& target = found->second;
    const auto notes = notes_.find(name);
    const auto order = orders_.find(name);
    const Member* member = nullptr;
    if (slot_)
        for (const Member& each : slot_->members)
            if (each.taker.name == name && !each.left) member = &each;
    ComparisonView out;
    bool from_policy = false;
    if (member != nullptr) {
        out.arms = member->taker.arms;
        out.course = member->taker.course;
        from_policy = member->taker.from_policy;
    } else if (order != orders_.end()) {
        out.arms = order->second.arms;
        out.course = Course::dense;
        from_policy = target.step.holds(out.arms.reference);
    } else if (target.step.next && (target.step.course == Course::dense || !target.step.watch)) {
        out.arms = *target.step.next;
        out.course = target.step.course;
        from_policy = target.step.holds(out.arms.reference);
    } else if (target.step.watch) {
        out.arms = *target.step.watch;
        out.course = Course::watched;
    } else {
        return {};
    }
    out.measuring = member != nullptr;
    out.by_order = order != orders_.end();
    const LedgerEntry* entry =
        ledger_.ledger().find(edges_.engine.keys().ledger_key(target.now, out.arms, from_policy));
    if (entry != nullptr) {
        out.judgement = entry->judgement;
        out.decision =
            decision_of(*entry, edges_.engine.policy().judge.settings.alpha, target.step.candidates);
        out.effect = Comparison(entry->columns).effect(out.decision.column);
    }
    if (notes != notes_.end()) out.lost_seconds = notes->second.lost.on(edges_.wall() / 86'400);
    if (out.measuring) return out;
    const std::uint64_t now = edges_.now();
    const auto wall_of = [&](std::uint64_t at) {
        return edges_.wall() + static_cast<std::int64_t>(at > now ? (at - now) / kSecond : 0);
    };
    if (out.course == Course::resting) {
        out.waits = rest_of(name, out.arms).why;
        if (!out.waits.empty())
            out.next_pair = wall_of(notes->second.rests.at(out.arms.key()).until);
        else if (entry != nullptr)
            out.next_pair = entry->decided + edges_.engine.policy().judge.retry_after.count();
        if (out.waits.empty()) out.waits = "it regressed";
        return out;
    }
    out.waits = why_no_slot();
    if (out.waits.empty()) out.waits = why_not(target);
    if (!out.waits.empty()) return out;
    const std::uint64_t next = notes == notes_.end()           ? 0
                               : out.course == Course::sparse  ? notes->second.next_sparse
                               : out.course == Course::watched ? notes->second.next_watch
                                                               : 0;
    if (next > now) {
        out.waits = "its next pair is not due";
        out.next_pair = wall_of(next);
    } else {
        out.waits = is_busy(name) ? "it is another target's turn" : "not busy";
    }
    return out;
}

}  // namespace wq
