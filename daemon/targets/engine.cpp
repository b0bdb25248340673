// SPDX-License-Identifier: LGPL-2.1-or-later
// The engine's interface, and how it looks, plans, decides and writes.
#include "targets/engine.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "machine/kernel_info.h"
#include "owned/restore.h"

namespace wq {
namespace {

constexpr unsigned kChecks = 16;  // every 4 min, with the shipped WatchdogSec=

}  // namespace

Engine::Engine(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      inventory_({edges_.log, edges_.read_topology, edges_.opted_out}, kernel_),
      ownership_(edges_.store),
      log_(edges_.log),
      reconciler_(edges_.files, edges_.store, ownership_, log_),
      keys_(inventory_, policy_),
      orders_(*this),
      circumstances_{.policy = policy_} {}

void Engine::set_policy(Policy policy) {
    policy_ = std::move(policy);
    log_.start_over();
    for (auto& [name, target] : targets_) target.start_over();
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
    return why_observing(kernel_, policy_, observe_why_);
}

void Engine::reconcile() {
    checks_ = 0;
    look_at_topology();
    look_and_plan();
    write();
}

// Others may have written what is ours. What is not ours is read before it is written.
void Engine::check() {
    if (++checks_ == kChecks || must_look()) return reconcile();
    std::vector<std::string> ours;
    for (const auto& [name, entry] : ownership_.store().entries()) ours.push_back(name);
    for (const std::string& name : ours) look_at(name, unbound_mask_);
    if (!ours.empty()) plan_targets();
    write();
}

// Whether there may be news that no event reports.
bool Engine::must_look() const {
    const auto waits = [](const auto& item) { return item.second.ask_udev || item.second.unread; };
    if (inventory_.is_stale() || std::ranges::any_of(targets_, waits)) return true;
    if (observing() != circumstances_.observing) return true;
    if (edges_.files.unbound_mask() != unbound_mask_) return true;
    const Target* parameter = default_target();
    if (parameter == nullptr) return false;
    const auto now = edges_.files.read_scope(kDefaultTarget, parameter->now.inode);
    return !now || now->word != parameter->now.scope.word;
}

void Engine::look() {
    look_at_topology();
    look_and_plan();
    refresh_circumstances();
    for (auto& [name, target] : targets_)
        target.show(as_found(target, ownership_.entry(name), decide_on(target), reconciler_.unsaved()));
}

void Engine::step_all() {
    plan_targets();  // the plans of followers depend on what @default holds
    write();
}

void Engine::restore_all() {
    wq::restore_all(edges_.files, edges_.store, edges_.log);
    for (auto& [name, target] : targets_) target.last = {};
}

void Engine::keep_all() {
    if (const auto saved = ownership_.keep(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
}

bool Engine::wants_retry() const {
    return std::ranges::any_of(targets_, [](const auto& item) { return item.second.wants_retry(); });
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
    unbound_mask_ = edges_.files.unbound_mask();
    for (const std::string& name : seen) look_at(name, unbound_mask_);
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
    const Owned* entry = ownership_.entry(name);
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
    if (const auto news = ownership_.notice(target, strict)) reconciler_.leave_to_writer(target, *news);
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
    Owned& entry = found == targets_.end() ? *ownership_.entry(name) : ownership_.entry_for(found->second);
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
        w.untouchable = holder == Holder::external ? left_to_writer(target).reason
                                                   : held_by_order(*ownership_.entry(name)).reason;
    }
    for (Workqueue& w : out)
        if (w.kind == Kind::unbound && w.scope.word == "default" && default_scope)
            w.scope.effective = default_scope;
    return out;
}

std::set<std::string> Engine::reverted() const {
    std::set<std::string> out;
    for (const auto& [name, target] : targets_)
        if (ownership_.holder_of(target) == Holder::revert) out.insert(name);
    return out;
}

const Target* Engine::default_target() const {
    const auto found = targets_.find(kDefaultTarget);
    return found == targets_.end() ? nullptr : &found->second;
}

// The followers of @default are planned with the scope to which plan and ledger move it.
void Engine::plan_targets() {
    const auto before = targets_before_us();
    const Target* parameter = default_target();
    PlanInput input{inventory_.topology(),
                    kernel_,
                    policy_,
                    before,
                    inventory_.pods_unknown(),
                    effective_shard_size(kernel_, policy_),
                    named_only_,
                    reverted()};
    input.default_moved = parameter != nullptr && (parameter->in_slot || ownership_.holds_ours(*parameter));
    input.default_holds = [&](const PlanLine& line) -> std::optional<Scope> {
        const Target& target = targets_.at(line.target.name);
        const auto& hold = target.step.hold;
        return hold && target.step.holds(*hold) && !target.refuses(hold->word) ? std::optional(hold->scope)
                                                                               : std::nullopt;
    };
    plan_each(input, [&](std::size_t, PlanLine line) { take(std::move(line)); });
    const bool is_set = policy_.default_scope.manage && policy_.default_scope.wish.sets_first();
    const std::string left = is_set ? std::string() : followers_to_leave(input);
    default_stays_ = left.empty() ? "" : "followers must stay at the kernel's scope: " + left;
    if (!left.empty() && input.default_moved) leave_followers();
}

// Only targets whose rule says `auto` keep their candidates, to save memory: there may be thousands of
// targets.
void Engine::take(PlanLine line) {
    Target& target = targets_.at(line.target.name);
    target.before = line.target.scope.effective;
    if (!searches(line.target, policy_)) line.candidates = std::vector<Candidate>();
    static_cast<Planned&>(target.plan) = std::move(line);
    make_step(target);
}

// A workqueue that must be left began to follow @default while that was moved, by us or by a pin. It stays at
// its baseline from now on: otherwise each mount could move it back and forth.
void Engine::leave_followers() {
    Target& target = targets_.at(kDefaultTarget);
    if (ownership_.entry_for(target).holder == Holder::revert) return;
    ownership_.stay_at_baseline(target, default_stays_ + "; not set again before a reload or a boot");
    log_.write(LOG_NOTICE, Event::restored, target.now.name,
               default_stays_ + "; it is put back until a reload", {});
}

std::string Engine::why_default_stays(const std::string& name) const {
    return name != kDefaultTarget || default_stays_.empty()
               ? ""
               : default_stays_ + "; a scope or `plan` in [default_scope] moves them too";
}

// Asks the ledger for the step, if there can be a comparison.
void Engine::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = ownership_.as_before_us(target);
    if (before.scope.word == "default") before.scope.effective = target.before;
    // A follower is in place where @default was moved to what its rule wants.
    const bool open =
        plan.finding == Finding::in_place && (searches(before, policy_) || plan.now != target.before);
    if (plan.finding != Finding::change && !open) return;
    if (!edges_.next_step) return;
    target.step = edges_.next_step(
        {before, plan, policy_, effective_shard_size(kernel_, policy_),
         [&](const Arms& arms, bool from_policy) { return keys_.ledger_key(target.now, arms, from_policy); },
         [&](const LedgerKey& key) { return edges_.verdicts.latest(key); },
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

// @default is put back before its followers, and moved after those that have a setting of their own.
void Engine::write() {
    refresh_circumstances();
    std::vector<Job> jobs;
    for (auto& [name, target] : targets_) jobs.push_back({&target, decide_on(target)});
    std::ranges::stable_sort(jobs, {}, [](const Job& job) {
        return job.item->name() != kDefaultTarget ? 1 : job.wish.word ? 2 : 0;
    });
    reconciler_.run(jobs, circumstances_.observing);
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
}

}  // namespace wq
