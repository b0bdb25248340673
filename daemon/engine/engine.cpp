// SPDX-License-Identifier: LGPL-2.1-or-later
// The engine's interface, and how it looks, plans, decides and writes.
#include "engine/engine.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "engine/restore.h"
#include "model/lacks_scopes.h"

namespace wq {

Engine::Engine(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      inventory_({edges_.log, edges_.read_topology, edges_.opted_out}, kernel_),
      ownership_(edges_.store),
      log_(edges_.log),
      applier_(edges_.files, edges_.store, ownership_, log_),
      keys_(inventory_, policy_),
      orders_(*this),
      circumstances_{.policy = policy_} {}

void Engine::set_policy(Policy policy) {
    policy_ = std::move(policy);
    log_.start_over();
    for (auto& [name, target] : targets_) {
        target.external.reset();
        target.last_word.clear();
        target.last_strict.reset();
        target.refused.clear();
        target.failures = target.stuck = 0;
    }
    if (targets_.empty()) return;  // at the start, not at a reload
    ownership_.start_over();
    inventory_.start_over();
}

void Engine::changed(Udev::Change change) {
    inventory_.changed(change);
    if (change != Udev::Change::workqueue && change != Udev::Change::lost) return;
    for (auto& [name, target] : targets_) target.ask_udev = true;
}

std::string Engine::observing() const {
    const std::string lacks = lacks_scopes(kernel_);
    if (!lacks.empty()) return observe_why_.empty() ? lacks : fmt::format("{}; {}", observe_why_, lacks);
    if (!observe_why_.empty()) return observe_why_;
    return policy_.mode == Mode::observe ? "mode is observe" : "";
}

void Engine::reconcile() {
    look_at_topology();
    look_and_plan();
    write();
}

void Engine::look() {
    look_at_topology();
    look_and_plan();
    refresh_circumstances();
    for (auto& [name, target] : targets_)
        target.show(as_found(target, ownership_.entry(name), decide_on(target), circumstances_));
}

void Engine::step_all() {
    plan_targets();  // the plans of followers depend on what @default holds
    write();
}

void Engine::restore_all() {
    restore_entries(edges_.files, edges_.store, edges_.log);
    for (auto& [name, target] : targets_) {
        target.last_word.clear();
        target.last_strict.reset();
    }
}

void Engine::keep_all() {
    if (const auto saved = ownership_.keep(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
}

bool Engine::wants_retry() const {
    return std::any_of(targets_.begin(), targets_.end(), [](const auto& item) {
        return item.second.failures > 0 && item.second.failures < Target::kTries;
    });
}

std::string Engine::summary() const {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets_) counts[name_of(target.state)]++;
    std::string out = observing().empty() ? std::string(name_of(policy_.mode)) : "observing: " + observing();
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

// ---- looking

void Engine::look_at_topology() {
    if (inventory_.look_at_topology()) keys_.forget_pods();
}

void Engine::look_at_targets() {
    const auto names = edges_.files.names();
    if (!names) return log_.write_once(LOG_ERR, Event::none, names.error().text);
    std::set<std::string> seen(names->begin(), names->end());
    for (const auto& [name, entry] : ownership_.store().entries()) seen.insert(name);
    for (const auto& [name, target] : targets_) seen.insert(name);
    const CpuSet unbound_mask = edges_.files.unbound_mask();
    for (const std::string& name : seen) look_at(name, unbound_mask);
}

void Engine::look_and_plan() {
    look_at_targets();
    plan_targets();
}

void Engine::look_at(const std::string& name, const CpuSet& unbound_mask) {
    const auto now = edges_.files.read(name, unbound_mask);
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    const auto known = targets_.find(name);
    if (known != targets_.end() && now && known->second.now.inode != now->inode) forget(name);
    if (!now) log_.write_once(LOG_WARNING, Event::none, now.error().text);
    if (now && now->unread)
        log_.write_once(LOG_WARNING, Event::none, fmt::format("{}: {}", name, now->untouchable));
    const BaselineEntry* entry = ownership_.entry(name);
    if (!now || now->unread || unbound_mask.empty()) {
        // The read may fail only because memory is short for a moment. A managed target stays as it is until
        // it can be read.
        if (const auto managed = targets_.find(name); managed != targets_.end())
            return keep_unread(managed->second, now ? &*now : nullptr);
        if (!now || entry != nullptr) return;
    }
    if (entry != nullptr && entry->inode != now->inode) ownership_.forget(name);
    Target& target = targets_[name];
    inventory_.fill(target, *now);
    notice(target, now->strict);
}

// SEEN: the part that could be read, or nullptr.
void Engine::keep_unread(Target& target, const Workqueue* seen) {
    target.unread = true;
    if (seen == nullptr || seen->scope.word.empty()) return;
    target.now.scope = seen->scope;
    if (seen->strict) target.now.strict = seen->strict;
    notice(target, seen->strict);
}

void Engine::notice(Target& target, std::optional<bool> strict) {
    if (const auto news = ownership_.notice(target, strict)) applier_.leave_to_writer(target, *news);
}

void Engine::forget(const std::string& name) {
    targets_.erase(name);
    ownership_.forget(name);
}

Result<const Target*> Engine::look_for_order(const std::string& name) {
    if (const std::string lacks = lacks_scopes(kernel_); !lacks.empty())
        return fail(name + ": " + lacks, EOPNOTSUPP);
    look_at(name);
    const auto found = targets_.find(name);
    if (found == targets_.end()) return fail(name + ": no such target", ENOENT);
    const Target& target = found->second;
    if (!target.now.untouchable.empty()) return fail(name + ": " + target.now.untouchable, EPERM);
    if (target.external)
        return fail(
            fmt::format("{}: external: holds '{}', which an external writer wrote; put the baseline back and "
                        "reload the policy",
                        name, target.now.scope.word),
            EPERM);
    if (const std::string why = observing(); !why.empty())
        return fail(fmt::format("{}: nothing is written while observing: {}", name, why), EPERM);
    return &target;
}

void Engine::order(const std::string& name, Holder holder, const std::string& scope) {
    const auto found = targets_.find(name);
    BaselineEntry& entry =
        found == targets_.end() ? *ownership_.entry(name) : ownership_.entry_for(found->second.now);
    entry.hold(holder, scope);
    if (found == targets_.end()) return;
    Target& target = found->second;
    std::erase_if(target.refused, [&](const Refusal& one) { return one.word == scope; });
    target.in_slot = false;
    target.stuck = 0;
}

// ---- planning and deciding

std::vector<Workqueue> Engine::targets_before_us() const {
    std::vector<Workqueue> out;
    std::optional<Scope> default_scope;
    for (const auto& [name, target] : targets_) {
        Workqueue& w = out.emplace_back(ownership_.as_before_us(target));
        if (w.kind != Kind::default_scope) continue;
        default_scope = w.scope.effective;
        // If @default is left to an external writer or held by an order, our plan does not move its
        // followers: they have the scope that it holds now.
        const Holder holder = ownership_.holder_of(target);
        if (holder != Holder::external && !is_order(holder)) continue;
        if (holder != Holder::revert) default_scope = target.now.scope.effective;
        w.untouchable = holder == Holder::external ? "external" : "held by an operator's order";
    }
    for (Workqueue& w : out)
        if (w.kind == Kind::unbound && w.scope.word == "default" && default_scope)
            w.scope.effective = default_scope;
    return out;
}

void Engine::plan_targets() {
    auto before = targets_before_us();
    const PlanInput input{inventory_.topology(),
                          kernel_,
                          policy_,
                          before,
                          inventory_.pods_unknown(),
                          effective_shard_size(kernel_, policy_)};
    plan_each(input, [&](std::size_t, PlanLine line) { take(std::move(line)); });
    // If @default stays at its baseline (it is not compared yet, because it comes last; it regressed; or the
    // kernel refuses its plan), it moves no follower, and each follower is planned again on its own. The same
    // is done if a scope other than the planned one was kept.
    const auto parameter = targets_.find(kDefaultTarget);
    if (parameter == targets_.end()) return;
    const Target& moving = parameter->second;
    std::optional<Scope> holds;
    if (moving.step.kind == Step::Kind::kept && !has_no_effect(moving)) holds = moving.step.hold->scope;
    if (!has_no_effect(moving) && (!holds || holds == moving.plan.planned)) return;
    for (Workqueue& w : before)
        if (w.kind == Kind::default_scope && !holds) w.untouchable = "stays at its baseline";
    PlanInput again = input;
    again.default_holds = holds;
    plan_each(again, [&](std::size_t, PlanLine line) {
        if (line.target.kind != Kind::default_scope) take(std::move(line));
    });
}

// Only targets that mode tune searches for keep their candidates, to save memory: there may be thousands of
// targets.
void Engine::take(PlanLine line) {
    Target& target = targets_.at(line.target.name);
    target.before = line.target.scope.effective;
    if (!searches(line.target, policy_)) line.candidates = std::vector<Candidate>();
    static_cast<Planned&>(target.plan) = std::move(line);
    make_step(target);
}

bool Engine::has_no_effect(const Target& target) const {
    const Planned& plan = target.plan;
    if (!why_left_alone(target).empty()) return true;
    if (target.step.kind == Step::Kind::kept) return target.refuses(target.step.hold->word);
    if (target.step.kind == Step::Kind::reverted) return true;
    if (plan.finding != Finding::change) return false;
    return !policy_.apply_unjudged || (plan.planned && target.refuses(std::string(name_of(*plan.planned))));
}

// Asks the ledger for the step, if there can be a comparison.
void Engine::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = ownership_.as_before_us(target);
    if (before.scope.word == "default") before.scope.effective = target.before;
    const bool open = plan.finding == Finding::in_place && searches(before, policy_);
    if (plan.finding != Finding::change && !open) return;
    if (!edges_.next_step) return;
    target.step = edges_.next_step(
        {before, plan, policy_, effective_shard_size(kernel_, policy_),
         [&](const Arms& arms, bool from_policy) { return keys_.ledger_key(target.now, arms, from_policy); },
         [&](const Arms& arms) { return edges_.verdicts.latest(keys_.verdict_key(target.now, arms)); },
         [&](const std::string& word) { return target.refuses(word); }, edges_.now()});
}

void Engine::refresh_circumstances() {
    circumstances_.observing = observing();
    circumstances_.pods_unknown = inventory_.pods_unknown();
    if (edges_.waiting) circumstances_.waiting = edges_.waiting();
}

Wish Engine::decide_on(const Target& target) {
    Wish out = decide(target, ownership_.entry(target.now.name), circumstances_);
    if (!out.lacks_scope) return out;
    const WorkqueueRule* rule = policy_.rule_for(target.now.name);
    const Origin* origin = target.now.kind == Kind::default_scope ? &policy_.default_scope.origin
                           : rule != nullptr                      ? &rule->origin
                                                                  : nullptr;
    if (origin != nullptr)
        log_.write_once(LOG_NOTICE, Event::unsupported,
                        fmt::format("{}: {}", origin->text(), target.plan.reason));
    return out;
}

// ---- writing

// Announces all writes on disk before the first one, and settles them on disk after the last one: two saves,
// also for a thousand targets.
void Engine::write() {
    refresh_circumstances();
    std::vector<std::pair<std::string, Wish>> wishes;
    for (auto& [name, target] : targets_) {
        const Wish& wish = wishes.emplace_back(name, decide_on(target)).second;
        target.show(wish.shown());
        applier_.announce(target, wish, goes_back(target, wish));
    }
    const auto saved = ownership_.save();
    circumstances_.unsaved = saved ? "" : saved.error().in("its baseline cannot be saved").text;
    if (!saved) log_.write_once(LOG_ERR, Event::baseline_broken, saved.error().in("no new settings").text);
    for (const auto& [name, wish] : wishes) {
        Target& target = targets_.at(name);
        // If an external writer wrote only one of word and strictness, and the other one is ours, it stays
        // until the daemon ends or must not write.
        if (target.external && goes_back(target, wish)) applier_.put_half_back(target);
        if (wish.hands_off) continue;
        if (!wish.word)
            applier_.put_back(target);  // needs no save: the baseline was on disk before our first write
        else if (saved)
            applier_.carry_out(target, wish);
        else if (wish.sets(target))
            target.show({State::waiting, circumstances_.unsaved});
    }
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
    if (const auto again = ownership_.save(); !again)
        log_.write_once(LOG_ERR, Event::none, again.error().text);
}

// Whether what is ours in TARGET is about to be put back.
bool Engine::goes_back(const Target& target, const Wish& wish) const {
    if (target.external) return !circumstances_.observing.empty() && ownership_.holds_ours(target);
    return !wish.hands_off && !wish.word && !target.is_stuck();
}

}  // namespace wq
