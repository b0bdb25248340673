// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/scheduler.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <set>
#include <tuple>

#include "base/clock.h"

namespace wq {

const Notes& OrderBook::of(const std::string& name) const {
    static const Notes none;
    const auto found = notes_.find(name);
    return found == notes_.end() ? none : found->second;
}

ArmRest OrderBook::rest_of(const std::string& name, const Arms& arms, std::uint64_t now) const {
    const auto& rests = of(name).aside.rests;
    const auto rest = rests.find(arms.key());
    if (rest == rests.end() || rest->second.until <= now) return {};
    return {rest->second.why, rest->second.suspect};
}

void OrderBook::put_off(const std::string& name, const std::string& why, std::uint64_t now) {
    constexpr unsigned kMostDoublings = 11;  // of 10 s: 5.7 hours
    Notes::Aside& aside = of(name).aside;
    aside.not_before = now + ((10 * kSecond) << std::min(aside.failures, kMostDoublings));
    aside.failures++;
    aside.why = why;
}

double OrderBook::lost(const std::string& name, std::int64_t wall) const {
    return of(name).lost.on(wall / 86'400);
}

double OrderBook::lost(std::int64_t wall) const {
    double out = 0;
    for (const auto& [name, notes] : notes_) out += lost(name, wall);
    return out;
}

void OrderBook::see(const std::map<std::string, double>& rates, std::uint64_t last, std::uint64_t now) {
    for (auto& [name, notes] : notes_)
        if (notes.load.rate_at <= last) notes.load.rate = 0;
    for (const auto& [name, rate] : rates) {
        auto& load = notes_[name].load;
        if (load.rate_at > last) continue;
        load.rate = rate;
        load.rate_at = now;
    }
}

void OrderBook::policy_changed() {
    for (auto& [name, notes] : notes_) notes.aside = {};
}

void OrderBook::forget_others(const std::map<std::string, Target>& targets) {
    std::erase_if(notes_, [&](const auto& item) { return !targets.contains(item.first); });
    std::erase_if(orders, [&](const auto& item) { return !targets.contains(item.first); });
}

namespace {

constexpr std::uint64_t kFreshRate = 12 * kSecond;
constexpr std::uint64_t kBatteryTime = 60 * kSecond;
constexpr std::uint64_t kHotplugTime = 5 * kSecond;

// Without a key, which takes long to make.
Taker keyless(const Target& target, const Arms& arms, Course course) {
    Taker out;
    out.name = target.now.name;
    out.arms = arms;
    out.course = course;
    out.candidates = target.step.candidates;
    out.candidate_holds = target.step.holds(arms.candidate);
    out.from_policy = target.step.holds(arms.reference);
    return out;
}

}  // namespace

Taker taker_of(const Target& target, const Arms& arms, Course course, const Keys& keys) {
    Taker out = keyless(target, arms, course);
    out.key = keys.ledger_key(target.now, arms, out.from_policy);
    return out;
}

void Scheduler::make_key(Taker& taker) const {
    if (taker.key == LedgerKey())
        taker.key = f_.keys.ledger_key(f_.targets.at(taker.name).now, taker.arms, taker.from_policy);
}

std::vector<Taker> Scheduler::takers_of(const Target& target) const {
    const Step& step = target.step;
    const auto order = f_.book.orders.find(target.now.name);
    const bool by_hand = order != f_.book.orders.end();
    std::vector<Taker> out;
    if (by_hand) out.push_back(keyless(target, order->second.arms, Course::dense));
    if (!by_hand && step.next) out.push_back(keyless(target, *step.next, step.course));
    if (!by_hand && step.watch) out.push_back(keyless(target, *step.watch, Course::watched));
    const Notes& notes = f_.book.of(target.now.name);
    for (Taker& one : out) {
        one.by_hand = by_hand;
        one.served = notes.turns.served;
        const bool watched = one.course == Course::watched;
        if (watched) one.due = notes.turns.next_watch;
        if (one.course == Course::sparse) one.due = notes.turns.next_sparse;
        if (one.due > 0 || one.course == Course::resting) make_key(one);
        if (one.due > 0 && in_doubt(one) && (!watched || notes.streaks.missed < OrderBook::kMostDropped))
            one.due = 0;
        if (one.course == Course::resting) {
            rest(one);
            continue;
        }
        if (!by_hand) one.waits = f_.host.empty() ? why_not(target) : f_.host;
        if (one.waits.empty()) one.waits = why_no_order(target, one.arms);
        if (one.waits.empty()) one.waits = f_.unsaved;
    }
    return out;
}

// Why TAKER rests, and until when.
void Scheduler::rest(Taker& taker) const {
    taker.waits = f_.book.rest_of(taker.name, taker.arms, f_.now).why;
    if (!taker.waits.empty()) {
        taker.next_pair = wall_of(f_.book.of(taker.name).aside.rests.at(taker.arms.key()).until);
        return;
    }
    taker.waits = "it regressed";
    if (const LedgerEntry* entry = f_.ledger.find(taker.key); entry != nullptr && entry->decided != 0)
        taker.next_pair = entry->decided + f_.policy.judge.retry_after.count();
}

std::vector<Taker> Scheduler::takers() const {
    std::vector<Taker> out;
    out.reserve(f_.targets.size());  // moving one takes longer than making it
    for (const auto& [name, target] : f_.targets)
        for (Taker& one : takers_of(target))
            if (one.waits.empty()) out.push_back(std::move(one));
    return out;
}

std::optional<Taker> Scheduler::answer(const std::string& name) const {
    const auto found = f_.targets.find(name);
    if (found == f_.targets.end()) return {};
    std::vector<Taker> all = takers_of(found->second);
    if (all.empty()) return {};
    // What is in force is shown, unless another candidate is compared in every slot.
    Taker out = all.front().course == Course::dense ? all.front() : all.back();
    make_key(out);
    if (!out.waits.empty()) return out;
    if (out.due > f_.now) {
        out.waits = "its next pair is not due";
        out.next_pair = wall_of(out.due);
    } else {
        out.waits = out.by_hand || is_busy(name) ? "it is another target's turn" : "not busy";
    }
    return out;
}

std::int64_t Scheduler::wall_of(std::uint64_t at) const {
    return f_.wall + static_cast<std::int64_t>(at > f_.now ? (at - f_.now) / kSecond : 0);
}

// Why no pair of TARGET is measured now, for any arms.
std::string Scheduler::why_not(const Target& target) const {
    if (target.unread) return "cannot be read now";
    if (is_order(target.holder())) return "held by an operator's order";
    const Notes::Aside& aside = f_.book.of(target.now.name).aside;
    if (f_.now < aside.not_before) return "its last slot gave no result: " + aside.why;
    if (f_.book.is_spent(target.now.name, f_.wall, f_.policy.judge))
        return "its judge.budget for today is used up";
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

std::string Scheduler::why_no_order(const Target& target, const Arms& arms) const {
    if (!f_.observing.empty()) return "nothing is written: " + f_.observing;
    if (const Refusal* why = target.refusal_of(arms.candidate.word)) return why->reason;
    return means_another(arms) ? "@default has another scope than this comparison assumes" : "";
}

// An arm with the word `default` means the scope that @default holds. If that is not the scope by which the
// arm is named, a pair would measure something else than its name says.
bool Scheduler::means_another(const Arms& arms) const {
    const auto parameter = f_.targets.find(kDefaultTarget);
    if (parameter == f_.targets.end() || parameter->second.in_slot) return false;
    const auto now = parameter->second.now.scope.effective;
    const auto moved = [&](const Arm& arm) { return arm.word == "default" && now && arm.scope != *now; };
    return moved(arms.reference) || moved(arms.candidate);
}

bool Scheduler::in_doubt(const Taker& taker) const {
    const LedgerEntry* entry = f_.ledger.find(taker.key);
    return entry != nullptr && watch_log(*entry) > std::log(kDoubt);
}

bool Scheduler::is_busy(const std::string& name) const {
    if (!f_.counted) return true;
    const auto& load = f_.book.of(name).load;
    if (f_.now > load.rate_at + kFreshRate) return false;  // it may be newer than the facts
    const Judging& judge = f_.policy.judge;
    const double counted = std::chrono::duration<double>(judge.window - judge.washout).count();
    return load.rate * counted >= static_cast<double>(judge.settings.min_items);
}

std::vector<Taker> Scheduler::choose(std::vector<Taker> ready) const {
    for (Taker& one : ready) make_key(one);
    const auto is_dense = [](const Taker& t) { return !t.is_alone() && t.course == Course::dense; };
    if (std::ranges::any_of(ready, is_dense))
        std::erase_if(ready, [](const Taker& t) {
            return t.name == kDefaultTarget && t.course == Course::dense && !t.by_hand;
        });
    std::ranges::stable_sort(ready, {},
                             [](const Taker& t) { return std::tuple(!t.by_hand, t.served, !t.is_alone()); });
    if (ready.front().is_alone()) return {ready.front()};
    // Only one target per comparison. If two targets disturb each other, the coin of one influences the
    // difference of the other, and both differences would be evidence in the same comparison.
    std::set<std::string> comparisons;
    std::vector<Taker> out;
    for (Taker& one : ready)
        if (!one.is_alone() && comparisons.insert(one.key.text()).second) out.push_back(std::move(one));
    return out;
}

Result<Arms> Scheduler::arms_of_order(const Target& target, const std::string& scope) const {
    const std::string& name = target.now.name;
    const Step& step = target.step;
    const Workqueue before = target.before_us();
    Arms arms{baseline_arm(before, target.plan), planned_arm(before, target.plan)};
    if (!scope.empty()) {
        const auto wanted = scope_named(scope);
        if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
        if (!f_.kernel.has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
        arms.candidate = arm_of(target.plan, *wanted);
    } else if (step.next) {
        arms = *step.next;
    } else if (arms.candidate == arms.reference) {
        return fail(name + ": the planned scope is in force already; name another one with --with", EINVAL);
    }
    // The arm in force is the reference.
    if (step.hold && step.holds(*step.hold) && arms.candidate != *step.hold) arms.reference = *step.hold;
    if (const std::string why = why_no_order(target, arms); !why.empty())
        return fail(name + ": " + why, EAGAIN);
    return arms;
}

void HostWatch::policy_changed(const Judging& judge) {
    if (judge.jitter != jitter_) draw_delay(judge);
}

void HostWatch::draw_delay(const Judging& judge) {
    jitter_ = judge.jitter;
    not_before_ = clock_.now() + (us(jitter_) == 0 ? 0 : clock_.random() % us(jitter_));
}

void HostWatch::tick(const Judging& judge, const std::string& system_state) {
    now_.system_state = system_state;
    const bool in_hours = judge.hours.contains(clock_.minute_of_day());
    if (in_hours && !now_.in_hours && judge.hours != Hours{}) draw_delay(judge);
    now_.in_hours = in_hours;
}

// Asks the firmware only now and then, because that takes time.
void HostWatch::look() {
    now_.memory_is_short = is_memory_short(paths_);
    const std::uint64_t now = clock_.now();
    if (battery_at_ != 0 && now - battery_at_ < kBatteryTime) return;
    battery_at_ = now;
    now_.on_battery = is_on_battery(paths_);
}

void HostWatch::cpus_changed() {
    hotplug_until_ = clock_.now() + kHotplugTime;
}

Conditions HostWatch::conditions(const Judging& judge) const {
    const std::uint64_t now = clock_.now();
    Conditions out = now_;
    out.in_hours = judge.hours.contains(clock_.minute_of_day());
    out.uptime = clock_.uptime();
    out.settle = judge.settle;
    out.delay = now < not_before_ ? (not_before_ - now) / kSecond + 1 : 0;
    out.hotplug = now < hotplug_until_;
    return out;
}

}  // namespace wq
