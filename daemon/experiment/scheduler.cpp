// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/scheduler.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>
#include <tuple>

namespace wq {

constexpr std::uint64_t kFreshRate = 12 * kSecond;

Taker taker_of(const Target& target, const Arms& arms, Course course) {
    Taker out;
    out.name = target.now.name;
    out.arms = arms;
    out.course = course;
    out.candidates = target.step.candidates;
    out.candidate_holds = target.step.holds(arms.candidate);
    out.from_policy = target.step.holds(arms.reference);
    return out;
}

void Scheduler::make_key(Taker& taker) const {
    if (taker.key == LedgerKey())
        taker.key =
            f_.targets.keys().ledger_key(f_.targets.find(taker.name)->now, taker.arms, taker.from_policy);
}

std::vector<Taker> Scheduler::takers_of(const Target& target) const {
    const Step& step = target.step;
    const auto order = f_.book.orders.find(target.now.name);
    const bool by_hand = order != f_.book.orders.end();
    std::vector<Taker> out;
    if (by_hand) out.push_back(taker_of(target, order->second.arms, Course::dense));
    if (!by_hand && step.next) out.push_back(taker_of(target, *step.next, step.course));
    if (!by_hand && step.watch) out.push_back(taker_of(target, *step.watch, Course::watched));
    const Notes& notes = f_.book.of(target.now.name);
    for (Taker& one : out) {
        one.by_hand = by_hand;
        const bool watched = one.course == Course::watched;
        if (watched) one.due = notes.turns.next_watch;
        if (one.course == Course::sparse) one.due = notes.turns.next_sparse;
        if (one.due > 0 || one.course == Course::resting) make_key(one);
        if (one.due > 0 && in_doubt(one) && (!watched || notes.streaks.missed < OrderBook::kMostDropped))
            one.due = 0;
        if (!by_hand) rest(one);
        if (one.waits.empty()) one.waits = why_waits(target, one);
    }
    return out;
}

// Why TAKER rests, and until when; nothing if it does not.
void Scheduler::rest(Taker& taker) const {
    if (const Rest* rest = f_.book.rest_of(taker.name, taker.arms); rest != nullptr) {
        taker.waits = rest->why;
        taker.next_pair = wall_of(rest->until);
        return;
    }
    if (taker.course != Course::resting) return;
    const LedgerEntry* entry = f_.ledger.find(taker.key);
    if (entry == nullptr || entry->judgement != Judgement::regressed) return;  // its rest is over
    taker.waits = "it regressed";
    if (entry->decided != 0) taker.next_pair = entry->decided + f_.targets.policy().judge.retry_after.count();
}

std::vector<Taker> Scheduler::takers() const {
    std::vector<Taker> out;
    out.reserve(f_.targets.all().size());  // moving one takes longer than making it
    for (const auto& [name, target] : f_.targets.all())
        for (Taker& one : takers_of(target))
            if (one.waits.empty()) out.push_back(std::move(one));
    return out;
}

std::optional<Taker> Scheduler::answer(const std::string& name) const {
    const Target* target = f_.targets.find(name);
    if (target == nullptr) return {};
    std::vector<Taker> all = takers_of(*target);
    if (all.empty()) return {};
    // What is in force is shown, unless another candidate is compared in every slot.
    Taker out = all.front().course == Course::dense ? all.front() : all.back();
    make_key(out);
    if (!out.waits.empty()) return out;
    if (out.due > f_.now) {
        out.waits = "its next pair is not due";
        out.next_pair = wall_of(out.due);
    } else if (!f_.book.no_rates.empty()) {
        out.waits = f_.book.no_rates;
    } else {
        out.waits = out.by_hand || is_busy(name) ? "it takes part in one of the next slots" : "not busy";
    }
    return out;
}

std::int64_t Scheduler::wall_of(std::uint64_t at) const {
    return f_.wall + static_cast<std::int64_t>(at > f_.now ? (at - f_.now) / kSecond : 0);
}

// Orders wait neither for the host nor for the next day.
std::string Scheduler::why_waits(const Target& target, const Taker& taker) const {
    if (!taker.by_hand && !f_.host.empty()) return f_.host;
    if (const auto no = why_not(f_.targets, target, Use::compare, &taker.arms)) return no->why;
    if (!taker.by_hand && f_.book.is_spent(taker.name, f_.wall, f_.targets.policy().judge))
        return "its judge.budget for today is used up";
    return f_.unsaved;
}

bool Scheduler::in_doubt(const Taker& taker) const {
    const LedgerEntry* entry = f_.ledger.find(taker.key);
    return entry != nullptr && watch_log(*entry) > std::log(kDoubt);
}

bool Scheduler::is_busy(const std::string& name) const {
    if (!f_.counted) return true;
    const auto& load = f_.book.of(name).load;
    if (f_.now > load.rate_at + kFreshRate) return false;  // it may be newer than the facts
    const Judging& judge = f_.targets.policy().judge;
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
    std::ranges::stable_sort(ready, {}, [this](const Taker& t) {
        return std::tuple(!t.by_hand, f_.book.of(t.name).turns.served, !t.is_alone());
    });
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
        if (!f_.targets.kernel().has(*wanted))
            return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
        arms.candidate = arm_of(target.plan, *wanted);
    } else if (step.next) {
        arms = *step.next;
    } else if (arms.candidate == arms.reference) {
        return fail(name + ": the planned scope is in force already; name another one with --with", EINVAL);
    }
    // The arm in force is the reference.
    if (step.hold && step.holds(*step.hold) && arms.candidate != *step.hold) arms.reference = *step.hold;
    if (const auto no = why_not(f_.targets, target, Use::compare, &arms))
        return fail(name + ": " + no->why, no->code);
    return arms;
}

void HostWatch::look(const Judging& judge) {
    const bool in_hours = judge.hours.contains(clock_.minute_of_day());
    if (judge.jitter != jitter_ || (in_hours && !seen.in_hours && judge.hours != Hours{})) {
        jitter_ = judge.jitter;
        not_before_ = clock_.now() + (us(jitter_) == 0 ? 0 : clock_.random() % us(jitter_));
    }
    seen.in_hours = in_hours;
    seen.memory_is_short = is_memory_short(paths_);
    seen.on_battery = is_on_battery(paths_);
}

Conditions HostWatch::conditions(const Judging& judge) const {
    const std::uint64_t now = clock_.now();
    Conditions out = seen;
    out.in_hours = judge.hours.contains(clock_.minute_of_day());
    out.uptime = clock_.uptime();
    out.settle = judge.settle;
    out.delay = now < not_before_ ? (not_before_ - now) / kSecond + 1 : 0;
    out.hotplug = now < hotplug_until_;
    return out;
}

}  // namespace wq
