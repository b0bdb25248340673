// SPDX-License-Identifier: LGPL-2.1-or-later
// Which trial runs, and when. How its pairs are measured is in trials_pair.cpp.
#include "tuner/trials.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "counters/counter_table.h"
#include "kernel/read_isolation.h"

namespace wq {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;

// The n-th trial of the same arms has less alpha, and so needs more pairs for the same power: as many more as
// the evidence that it needs has doublings more than that of the first.
unsigned pairs_of_trial(unsigned max_pairs, unsigned n) {
    const double more = std::ceil(std::log2(n * (n + 1.0) / 2));
    return std::min(kMaxPairs, max_pairs + static_cast<unsigned>(more));
}

bool any_work_counter(const std::vector<JudgedCounter>& counters) {
    return std::any_of(counters.begin(), counters.end(),
                       [](const auto& c) { return is_work_counter(c.name); });
}

bool judges_tail(const std::vector<JudgedCounter>& counters) {
    return std::ranges::find(counters, "tail", &JudgedCounter::name) != counters.end();
}

}  // namespace

Trials::Trials(Edges edges) : edges_(std::move(edges)) {}

Trials::~Trials() {
    edges_.counters.detach();
}

void Trials::policy_changed() {
    no_counters_.clear();
    not_begun_.clear();
    rests_.clear();
    edges_.tuner.judge_by(counters_here());
    // Verdicts are known by what they were judged by: that is settled before the first look.
    if (const auto& named = edges_.tuner.policy().judge.counters;
        any_work_counter(named) && !std::ranges::all_of(named, is_work_counter, &JudgedCounter::name))
        if (auto traffic = edges_.counters.traffic(); !traffic && !passes(traffic.error().code))
            no_counters(traffic.error());
    const auto jitter = edges_.tuner.policy().judge.jitter;
    if (jitter != jitter_) draw_delay();
    jitter_ = jitter;
}

// Hosts of a fleet that start, or whose hours open, at the same time shall not begin at the same time.
void Trials::draw_delay() {
    const auto most = static_cast<std::uint64_t>(edges_.tuner.policy().judge.jitter.count()) * kSecond;
    not_before_ = edges_.now() + (most == 0 ? 0 : edges_.random() % most);
}

std::vector<JudgedCounter> Trials::counters_here() const {
    auto out = edges_.tuner.policy().judge.counters;
    if (!no_counters_.empty())
        std::erase_if(out, [](const JudgedCounter& c) { return is_work_counter(c.name); });
    return out;
}

// For good, until a reload: then the counters that are left make verdicts of their own.
void Trials::no_counters(const Error& why) {
    no_counters_ = why.text;
    edges_.log.write({LOG_NOTICE, Event::none, "work is not counted: " + no_counters_});
    edges_.tuner.judge_by(counters_here());
}

// A target whose trials come to nothing (its load stops, its file cannot be written) is left alone for a
// while, twice as long each time: switching costs something. AT_ONCE: the first time, too.
void Trials::rest(const std::string& name, bool at_once) {
    constexpr unsigned kMostDoublings = 11;  // of 10 s: 5.7 hours
    Rest& rest = rests_[name];
    if (rest.times > 0 || at_once)
        rest.until = edges_.now() + ((10 * kSecond) << std::min(rest.times, kMostDoublings));
    rest.times++;
}

bool Trials::wants(const Target& target) const {
    if (target.unread) return false;
    if (is_reverted(edges_.tuner.baseline_of(target.now.name))) return false;  // by an operator's order
    if (const auto rest = rests_.find(target.now.name);
        rest != rests_.end() && edges_.now() < rest->second.until)
        return false;
    if (const auto parked = parked_.find(target.now.name); parked != parked_.end() && parked->second->by_hand)
        return why_cut_off(*parked->second).empty();
    if (!target.step.trial || target.refuses(target.step.trial->candidate.word)) return false;
    switch (target.state) {
        case State::waiting:
        case State::applied:
        case State::kept:
        case State::reverted:
        case State::as_planned:
            return true;
        default:
            return false;
    }
}

std::string Trials::why_not_now() const {
    if (edges_.now() < not_before_)
        return fmt::format("waiting: {} of the random delay are left",
                           rough_time((not_before_ - edges_.now()) / kSecond + 1));
    if (!edges_.tuner.policy().judge.hours.contains(edges_.minute_of_day()))
        return "waiting: outside judge.hours";
    return "";
}

// The targets that had traffic since the last tick; all, where only counters of the machine can judge.
Result<std::map<std::string, bool>> Trials::busy() {
    std::map<std::string, bool> out;
    const Judging& judge = edges_.tuner.policy().judge;
    if (no_counters_.empty()) {
        const std::uint64_t now = edges_.now();
        auto traffic = edges_.counters.traffic();
        if (traffic) {
            const double share = static_cast<double>(now - traffic_at_) / kSecond /
                                 std::chrono::duration<double>(judge.window - judge.washout).count();
            for (const auto& [name, counted] : *traffic) {
                const std::uint64_t items = counted.started;
                const auto before = traffic_.find(name);
                if (before == traffic_.end()) continue;
                // A scope write sets the kernel's counts back to zero.
                const std::uint64_t more =
                    items >= before->second.started ? items - before->second.started : items;
                out[name] =
                    static_cast<double>(more) >= static_cast<double>(judge.settings.min_items) * share;
            }
            traffic_ = std::move(*traffic);
            traffic_at_ = now;
            return out;
        }
        if (passes(traffic.error().code)) return fail("waiting: " + traffic.error().text);
        no_counters(traffic.error());
    }
    if (counters_here().empty()) return fail("nothing to judge by: " + no_counters_);
    for (const auto& [name, target] : edges_.tuner.targets()) out[name] = true;
    return out;
}

void Trials::tick() {
    const bool in_hours = edges_.tuner.policy().judge.hours.contains(edges_.minute_of_day());
    if (in_hours && !in_hours_ && edges_.tuner.policy().judge.hours != Hours{}) draw_delay();
    in_hours_ = in_hours;
    check();
    if ((unsaved_ || !record_error_.empty()) && !saving_since_) save();
    if (current_) return;
    const auto& targets = edges_.tuner.targets();
    std::erase_if(served_, [&](const auto& item) { return !targets.contains(item.first); });
    std::erase_if(rests_, [&](const auto& item) { return !targets.contains(item.first); });
    if (!edges_.tuner.observing().empty() ||
        std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return wants(t.second); })) {
        traffic_.clear();
        return;
    }
    begin_one();
}

// Those with traffic take turns; @default, which moves its followers, goes before all others.
void Trials::begin_one() {
    if (const std::string why = why_no_record(); !why.empty())
        return edges_.tuner.explain_waiting("waiting: " + why);
    const std::string not_now = why_not_now();
    const bool by_hand =
        std::any_of(parked_.begin(), parked_.end(), [](const auto& p) { return p.second->by_hand; });
    if (!not_now.empty() && !by_hand) return edges_.tuner.explain_waiting(not_now);
    const auto busy_now = busy();
    if (!busy_now) return edges_.tuner.explain_waiting(busy_now.error().text);
    edges_.tuner.explain_waiting(not_now.empty() ? "waiting: not busy, or it is another target's turn"
                                                 : not_now);
    const Target* next = nullptr;
    const auto& targets = edges_.tuner.targets();
    const auto parameter = targets.find(kDefaultTarget);
    const bool default_first = parameter != targets.end() && wants(parameter->second);
    for (const auto& [name, target] : targets) {
        const auto has_traffic = busy_now->find(name);
        if (!wants(target) || has_traffic == busy_now->end() || !has_traffic->second) continue;
        // What `default` means to it is not settled yet.
        if (default_first && name != kDefaultTarget &&
            edges_.tuner.as_before_us(target).scope.word == "default")
            continue;
        const auto parked = parked_.find(name);
        if (parked == parked_.end() && means_another(*target.step.trial)) continue;
        if (!not_now.empty() && (parked == parked_.end() || !parked->second->by_hand)) continue;
        if (next == nullptr || name == kDefaultTarget ||
            (next->now.name != kDefaultTarget && served_[name] < served_[next->now.name]))
            next = &target;
    }
    if (next == nullptr) return;
    const std::string name = next->now.name;
    served_[name] = edges_.now();
    Status begun;
    if (auto parked = parked_.extract(name); !parked.empty())
        begun = resume(std::move(parked.mapped()));
    else
        begun = begin(name, *next->step.trial, false);
    if (!begun) did_not_begin(name, false, begun.error());
}

Trials::RunningPtr Trials::make_running(const Target& target, const Arms& arms, bool by_hand) const {
    const Judging& judging = edges_.tuner.policy().judge;
    auto out = std::make_unique<Running>();
    out->name = target.now.name;
    out->inode = target.now.inode;
    out->before = edges_.tuner.as_before_us(target).scope.word;
    out->arms = arms;
    out->key = edges_.tuner.key_for(target.now, arms);
    out->by_hand = by_hand;
    out->online = edges_.tuner.online();
    out->meters = {edges_.tuner.counters(), nullptr, edges_.paths};
    out->settings = judging.settings;
    out->window = judging.window;
    out->washout = judging.washout;
    return out;
}

// Work is counted where it can be, also where only the machine's counters judge: a pair without work says
// nothing.
Status Trials::attach(Running& trial) {
    std::string limits;
    if (no_counters_.empty()) {
        edges_.counters.watch(read_isolation(edges_.paths).cpus());
        if (auto attached = edges_.counters.attach({trial.name}, judges_tail(trial.meters.counters));
            !attached)
            return attached;
        trial.meters.work = &edges_.counters;
        limits = edges_.counters.limits();
    } else {
        limits = "work is not counted: " + no_counters_;
    }
    if (trial.meters.counters.empty() ||
        (any_work_counter(trial.meters.counters) && trial.meters.work == nullptr))
        return fail("nothing to judge by: " + no_counters_, EOPNOTSUPP);
    if (trial.judge && limits != trial.limits) return fail("it is not counted as before: " + limits, ESTALE);
    trial.limits = limits;
    return {};
}

// An arm that leaves a target on `default` is what @default holds; where that is another scope (yet, or
// since), what is measured is not what the arm is called.
bool Trials::means_another(const Arms& arms) const {
    const auto parameter = edges_.tuner.targets().find(kDefaultTarget);
    if (parameter == edges_.tuner.targets().end()) return false;
    if (parameter->second.on_trial) return false;  // it moves there and back; who is parked waits for its end
    const auto now = parameter->second.now.scope.effective;
    const auto moved = [&](const Arm& arm) { return arm.word == "default" && now && arm.scope != *now; };
    return moved(arms.baseline) || moved(arms.candidate);
}

Status Trials::begin(const std::string& name, const Arms& arms, bool by_hand) {
    if (means_another(arms)) return fail(name + ": @default is not what it is to be yet", EAGAIN);
    RunningPtr trial = make_running(edges_.tuner.targets().at(name), arms, by_hand);
    if (auto attached = attach(*trial); !attached) return attached;
    trial->number = edges_.verdicts.begun(trial->key) + 1;
    trial->settings.alpha = lifetime_alpha(trial->settings.alpha, trial->number);
    trial->settings.max_pairs = pairs_of_trial(trial->settings.max_pairs, trial->number);
    trial->judge.emplace(trial->settings, trial->meters.counters);
    trial->readings.counters = trial->meters.counters;
    trial->asked = edges_.now();
    trial->save = saves_ + 1;
    current_ = std::move(trial);
    edges_.verdicts.begin(current_->key);
    save();
    return current_->recorded ? begin_recorded() : Status();
}

Status Trials::resume(RunningPtr trial) {
    const std::string name = trial->name;
    Status ready = attach(*trial);
    if (ready) ready = edges_.tuner.begin_trial(name, trial->arms);
    if (!ready) {
        edges_.counters.detach();
        trial->meters.work = nullptr;
        parked_[name] = std::move(trial);
        if (ready.error().code == ESTALE) end_parked(name, ready.error().text);
        return ready;
    }
    if (edges_.hold_memory) edges_.hold_memory(true);
    trial->waits.clear();
    trial->since = edges_.wall();
    current_ = std::move(trial);
    start_pair();
    return {};
}

Status Trials::order(const std::string& name, const std::string& scope) {
    if (auto may = edges_.tuner.may_try(name); !may) return may;
    if (current_) return fail(fmt::format("{} is on trial; one at a time", current_->name), EBUSY);
    if (const std::string why = why_no_record(); !why.empty()) return fail(name + ": " + why, EIO);
    edges_.tuner.reconcile();
    const auto found = edges_.tuner.targets().find(name);
    if (found == edges_.tuner.targets().end()) return fail(name + ": vanished", ENOENT);
    const Target& target = found->second;
    const Workqueue before = edges_.tuner.as_before_us(target);
    Arms arms{baseline_arm(before, target.plan), planned_arm(before, target.plan)};
    if (!scope.empty()) {
        const auto wanted = scope_named(scope);
        if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
        if (!edges_.tuner.kernel().has(*wanted))
            return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
        arms.candidate = arm_of(target.plan, *wanted);
    } else if (target.step.trial) {
        arms = *target.step.trial;
    } else if (arms.candidate == arms.baseline) {
        return fail(fmt::format("{}: the plan is what is there; name a scope with --arm", name), EINVAL);
    }
    Status begun = begin(name, arms, true);
    if (begun) end_parked(name, "a trial by hand took its place");
    return begun;
}

// Keeps what was measured, and makes room for others.
void Trials::park(const std::string& why) {
    RunningPtr trial = std::move(current_);
    trial->waits = why;
    trial->pair.reset();
    trial->meters.work = nullptr;
    const std::string name = trial->name;
    parked_[name] = std::move(trial);
    traffic_.clear();
    rest(name, false);
    edges_.tuner.end_trial(name);
    let_go();
}

void Trials::let_go() {
    edges_.counters.detach();
    if (edges_.hold_memory) edges_.hold_memory(false);
}

std::string Trials::why_cut_off(const Running& trial) const {
    const auto found = edges_.tuner.targets().find(trial.name);
    if (found == edges_.tuner.targets().end() || found->second.now.inode != trial.inode)
        return "the workqueue vanished";
    const Target& target = found->second;
    if (const std::string why = edges_.tuner.observing(); !why.empty())
        return "nothing is written any more: " + why;
    if (edges_.tuner.online() != trial.online) return "CPUs came or went";
    if (target.external) return fmt::format("an external writer wrote '{}'", target.external_text);
    // While it waits, nobody watches what no rule plans for.
    if (const std::string now = edges_.tuner.as_before_us(target).scope.word; now != trial.before)
        return fmt::format("an external writer wrote '{}'", now);
    if (!target.now.untouchable.empty()) return target.now.untouchable;
    if (const std::string& why = edges_.tuner.pods_unknown(); !why.empty()) return "pods unknown: " + why;
    if (target.plan.finding == Finding::pods_unknown) return target.plan.reason;
    if (means_another(trial.arms)) return "@default moved";
    const BaselineEntry* entry = edges_.tuner.baseline_of(trial.name);
    const bool runs = &trial == current_.get() && !is_recording();
    if (pinned_scope(entry) || is_reverted(entry) || (runs && !target.on_trial)) return "an operator's order";
    const VerdictKey key = edges_.tuner.key_for(target.now, trial.arms);
    if (key.cpus != trial.key.cpus)
        return fmt::format("its CPUs are {} now, and were {}", key.cpus, trial.key.cpus);
    if (key != trial.key) return "the policy changed";
    if (!trial.by_hand && target.step.trial != trial.arms) return "the plan changed";
    return "";
}

void Trials::check() {
    if (is_recording())
        check_recording();
    else if (current_)
        if (const std::string why = why_cut_off(*current_); !why.empty()) cut_off(why);
    std::map<std::string, std::string> gone;
    for (const auto& [name, trial] : parked_)
        if (const std::string why = why_cut_off(*trial); !why.empty()) gone[name] = why;
    for (const auto& [name, why] : gone) end_parked(name, why);
}

void Trials::cancel_all(const std::string& why) {
    cancelling_ = true;
    if (is_recording())
        (void)give_up({0, why});
    else if (current_)
        cut_off(why);
    while (!parked_.empty()) end_parked(std::string(parked_.begin()->first), why);
    cancelling_ = false;
    if (unsaved_) save();
}

std::optional<Progress> Trials::progress_of(const std::string& name) const {
    if (current_ && current_->name == name) return progress(*current_);
    const auto parked = parked_.find(name);
    if (parked == parked_.end()) return {};
    return progress(*parked->second);
}

Progress Trials::progress(const Running& trial) const {
    static constexpr const char* kPhases[] = {"recording", "washout", "counting", "draining"};
    Progress out;
    out.arms = trial.arms;
    out.standing = trial.judge->standing();
    out.pair = out.standing.pairs + 1;
    out.max_pairs = trial.settings.max_pairs;
    out.dropped = trial.dropped;
    out.lost = trial.lost;
    out.since = trial.since;
    out.most = std::chrono::duration_cast<std::chrono::milliseconds>(trial.settings.max_pairs *
                                                                     (2 * trial.window + trial.washout));
    out.phase = &trial == current_.get() ? kPhases[static_cast<int>(trial.phase)] : "waiting";
    out.reason = trial.waits.empty() ? trial.limits : trial.waits;
    return out;
}

}  // namespace wq
