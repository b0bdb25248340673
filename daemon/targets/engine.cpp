// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/engine.h"

#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>
#include <cerrno>
#include <set>

#include "machine/kernel_info.h"
#include "owned/writer.h"

namespace wq {
namespace {

// Sets TARGET to what was read NOW. An answer of udev is valid until udev gives another one.
void fill(Target& target, Workqueue now,
          const std::function<std::optional<bool>(const std::string&)>& opted_out) {
    target.now = std::move(now);
    target.unread = false;
    if (target.ask_udev) {
        std::optional<bool> answer = false;
        if (target.now.kind != Kind::default_scope) answer = opted_out(target.now.name);
        if (answer) target.opted_out = answer;
        target.ask_udev = !answer;
    }
    if (target.opted_out.value_or(target.now.untouchable.empty()))
        target.now.untouchable = target.opted_out ? kOptedOutByUdev : kNotProcessedByUdev;
}

// All TARGETS with the values of their baselines.
std::vector<Workqueue> all_before_us(const std::map<std::string, Target>& targets) {
    std::vector<Workqueue> out;
    std::optional<Scope> default_scope;
    for (const auto& [name, target] : targets) {
        Workqueue& w = out.emplace_back(target.before_us());
        if (w.kind != Kind::default_scope) continue;
        default_scope = w.scope.effective;
        // If @default is left to an external writer or held by an order, our plan does not move its
        // followers: they have the scope that it holds now.
        const Holder holder = target.holder();
        if (holder != Holder::external && !is_order(holder)) continue;
        if (holder != Holder::revert) default_scope = target.now.scope.effective;
        w.untouchable =
            (holder == Holder::external ? left_to_writer(target) : held_by_order(*target.entry())).reason;
    }
    for (Workqueue& w : out)
        if (w.kind == Kind::unbound && w.scope.word == "default" && default_scope)
            w.scope.effective = default_scope;
    return out;
}

}  // namespace

Targets::Targets(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      inventory_(edges_.log, edges_.read_topology, kernel_),
      log_(edges_.log),
      reconciler_(edges_.files, edges_.store, log_),
      keys_(inventory_, policy_) {}

std::string Targets::observing() const {
    return why_observing(kernel_, policy_, observe_why_);
}

bool Targets::wants_retry() const {
    return std::ranges::any_of(targets_, [](const auto& item) { return item.second.wants_retry(); });
}

std::string Targets::summary() const {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets_) counts[name_of(target.state)]++;
    std::string out = observing().empty() ? std::string(name_of(policy_.mode)) : "observing: " + observing();
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

std::string Targets::why_default_stays() const {
    return default_stays_.empty() ? ""
                                  : default_stays_ + "; a scope or `plan` in [default_scope] moves them too";
}

std::string Targets::note() const {
    const std::string why = policy_.default_scope.manage ? why_default_stays() : "";
    return why.empty() ? "" : fmt::format("{}: not moved meanwhile: {}", kDefaultTarget, why);
}

Status Targets::may(const Target& target, Use use) const {
    const auto no = [&](int code, const std::string& why) {
        return fail(target.now.name + ": " + why, code);
    };
    if (!target.now.untouchable.empty()) return no(EPERM, target.now.untouchable);
    if (target.external)
        return no(EPERM, fmt::format("external: holds '{}', which an external writer wrote; put the baseline "
                                     "back and reload the policy",
                                     target.now.scope.word));
    if (const std::string why = observing(); !why.empty())
        return no(EPERM, "nothing is written while observing: " + why);
    if (use == Use::revert) return {};
    if (target.now.name == kDefaultTarget && !default_stays_.empty()) return no(EPERM, why_default_stays());
    if (const std::string& why = inventory_.pods_unknown(); !why.empty())
        return fail("pods unknown: " + why, EPERM);
    if (use == Use::pin) return {};
    const Holder holder = target.holder();
    if (holder == Holder::pin) return no(EBUSY, "pinned; unpin it first");
    if (holder == Holder::revert)
        return no(EBUSY, target.entry()->must_stay() ? target.entry()->note
                                                     : "reverted by an operator's order; unpin it first");
    if (target.unread) return no(EAGAIN, "cannot be read now");
    if (!target.now.scope.effective) return no(EINVAL, "wq-tuned does not know its current scope");
    return {};
}

// ---- looking

void Targets::look_and_plan() {
    if (inventory_.look_at_topology()) keys_.forget_pods();
    if (const auto names = edges_.files.names()) {
        std::set<std::string> seen(names->begin(), names->end());
        for (const auto& [name, entry] : edges_.store.entries()) seen.insert(name);
        for (const auto& [name, target] : targets_) seen.insert(name);
        unbound_mask_ = edges_.files.unbound_mask();
        complete_ = true;
        for (const std::string& name : seen) look_at(name, unbound_mask_);
    } else {
        complete_ = false;
        log_.write_once(LOG_ERR, Event::none, names.error().text);
    }
    plan();
}

void Targets::look_at(const std::string& name, const CpuSet& unbound_mask) {
    const auto now = edges_.files.read(name, unbound_mask);
    const auto forget = [this](const std::string& one) {
        targets_.erase(one);
        edges_.store.remove(one);
    };
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    if (const auto known = targets_.find(name);
        known != targets_.end() && now && known->second.now.inode != now->inode)
        forget(name);
    if (!now) log_.write_once(LOG_WARNING, Event::none, now.error().text);
    if (now && now->unread)
        log_.write_once(LOG_WARNING, Event::none, fmt::format("{}: {}", name, now->untouchable));
    const Owned* entry = edges_.store.find(name);
    const auto known = targets_.find(name);
    const bool unread = !now || now->unread || unbound_mask.empty();
    complete_ = complete_ && !unread;
    // Memory may be short for a moment. A managed target stays as it is until it can be read.
    if (unread && known == targets_.end() && (!now || entry != nullptr)) return;
    if (unread && known != targets_.end()) {
        Target& target = known->second;
        target.unread = true;
        if (!now || now->scope.word.empty()) return;
        target.now.scope = now->scope;
        if (now->strict) target.now.strict = now->strict;
    } else {
        if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
        Target& target = targets_[name];
        target.store = &edges_.store;
        fill(target, *now, edges_.opted_out);
    }
    Target& target = targets_.at(name);
    if (const auto news = target.notice(now->strict)) reconciler_.leave_to_writer(target, *news);
}

bool Targets::is_as_seen() const {
    if (!complete_ || inventory_.is_stale() || !reconciler_.unsaved().empty()) return false;
    if (edges_.files.unbound_mask() != unbound_mask_) return false;
    return std::ranges::all_of(edges_.store.entries(), [this](const auto& item) {
        const auto& [name, entry] = item;
        const auto target = targets_.find(name);
        if (target == targets_.end() || target->second.tries_to_go_back()) return false;
        const auto scope = edges_.files.read_scope(name, entry.inode);
        if (!scope || scope->word != target->second.last.main) return false;
        if (!entry.strict) return true;
        const auto strict = edges_.files.read_strict(name, entry.inode);
        return strict && *strict == target->second.last.strict;
    });
}

// ---- planning

// The followers of @default are planned with the scope to which plan and ledger move it. Only targets whose
// rule says `auto` keep their candidates, to save memory: there may be thousands of targets.
void Targets::plan() {
    const auto before = all_before_us(targets_);
    PlanInput input{inventory_.topology(),
                    kernel_,
                    policy_,
                    before,
                    inventory_.pods_unknown(),
                    effective_shard_size(kernel_, policy_),
                    named_only_};
    for (const auto& [name, target] : targets_) {
        if (target.holder() == Holder::revert) input.reverted.insert(name);
        if (name == kDefaultTarget) input.default_moved = target.in_slot || target.holds_ours();
    }
    input.default_holds = [&](const PlanLine& line) -> std::optional<Scope> {
        const Target& target = targets_.at(line.target.name);
        const auto& hold = target.step.hold;
        const bool moves = hold && target.step.holds(*hold) && target.refusal_of(hold->word) == nullptr;
        return moves ? std::optional(hold->scope) : std::nullopt;
    };
    plan_each(input, [&](std::size_t, PlanLine line) {
        Target& target = targets_.at(line.target.name);
        target.before = line.target.scope.effective;
        if (!searches(line.target, policy_) || line.finding == Finding::leave)
            line.candidates = std::vector<Candidate>();
        static_cast<Planned&>(target.plan) = std::move(line);
        make_step(target);
    });
    const bool is_set = policy_.default_scope.manage && policy_.default_scope.wish.sets_first();
    const std::string left = is_set ? std::string() : followers_to_leave(input);
    default_stays_ = left.empty() ? "" : "followers must stay at the kernel's scope: " + left;
    if (!left.empty() && input.default_moved) leave_followers();
}

// A workqueue that must be left began to follow @default while that was moved, by us or by a pin. It stays at
// its baseline until a reload or a boot: otherwise each mount could move it back and forth.
void Targets::leave_followers() {
    Owned& entry = targets_.at(kDefaultTarget).make_entry();
    if (entry.holder == Holder::revert) return;
    entry.hold(Holder::revert, default_stays_ + "; not set again before a reload or a boot");
    log_.write(LOG_NOTICE, Event::restored, kDefaultTarget,
               default_stays_ + "; it is put back until a reload", {});
}

// Asks the ledger for the step, if there can be a comparison.
void Targets::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = target.before_us();
    if (before.scope.word == "default") before.scope.effective = target.before;
    // A follower is in place where @default was moved to what its rule wants.
    const bool open =
        plan.finding == Finding::in_place && (searches(before, policy_) || plan.now != target.before);
    if ((plan.finding != Finding::change && !open) || !edges_.next_step) return;
    target.step = edges_.next_step(
        {before, plan, policy_, effective_shard_size(kernel_, policy_),
         [&](const Arms& arms, bool from_policy) { return keys_.ledger_key(target.now, arms, from_policy); },
         [&](const LedgerKey& key) { return edges_.verdicts.latest(key); },
         [&](const std::string& word) { return target.refusal_of(word) != nullptr; }, edges_.now()});
}

// ---- deciding

Circumstances Targets::circumstances() const {
    return {observing(), inventory_.pods_unknown(), edges_.waiting ? edges_.waiting() : Waiting()};
}

Wish Targets::decide_on(const Target& target, const Circumstances& all) {
    Wish out = decide(target, all);
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

namespace {

Target* find(std::map<std::string, Target>& targets, const std::string& name) {
    const auto found = targets.find(name);
    return found == targets.end() ? nullptr : &found->second;
}

}  // namespace

void Engine::set_policy(Policy policy) {
    policy_ = std::move(policy);
    log_.start_over();
    for (auto& [name, target] : targets_) target.start_over();
    if (targets_.empty()) return;  // at the start, not at a reload
    edges_.store.start_over(Knob::scope);
    inventory_.start_over();
}

void Engine::changed(Udev::Change change) {
    inventory_.changed(change);
    if (change != Udev::Change::workqueue && change != Udev::Change::lost) return;
    for (auto& [name, target] : targets_) target.ask_udev = true;
}

void Engine::reconcile() {
    look_and_plan();
    write();
}

void Engine::tick(bool whole) {
    if (whole || !is_as_seen()) return reconcile();
    if (circumstances() != decided_) write();
}

void Engine::look() {
    look_and_plan();
    const Circumstances all = circumstances();
    for (auto& [name, target] : targets_)
        target.show(as_found(target, decide_on(target, all), reconciler_.unsaved()));
}

void Engine::step_all() {
    plan();  // the plans of followers depend on what @default holds
    write();
}

void Engine::restore_all() {
    wq::restore_all(edges_.files, edges_.store, edges_.log);
    for (auto& [name, target] : targets_) target.last = {};
}

void Engine::keep_all() {
    if (const auto saved = edges_.store.keep(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
}

// @default is put back before its followers, and moved after those that have a setting of their own.
void Engine::write() {
    decided_ = circumstances();
    std::vector<Job> jobs;
    for (auto& [name, target] : targets_) jobs.push_back({&target, decide_on(target, decided_)});
    std::ranges::stable_sort(jobs, {}, [](const Job& job) {
        return job.item->name() != kDefaultTarget ? 1 : job.wish.word ? 2 : 0;
    });
    reconciler_.run(jobs, decided_.observing);
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
}

// ---- orders

// Looks at NAME. Error: why USE is refused now.
Result<Target*> Engine::look_for(const std::string& name, Use use) {
    if (const std::string lacks = lacks_scopes(kernel_); !lacks.empty())
        return fail(name + ": " + lacks, EOPNOTSUPP);
    look_at(name, edges_.files.unbound_mask());
    Target* target = find(targets_, name);
    if (target == nullptr) return fail(name + ": no such target", ENOENT);
    if (auto may = this->may(*target, use); !may) return tl::unexpected(may.error());
    return target;
}

Status Engine::pin(const std::string& name, const std::string& scope) {
    const auto found = look_for(name, Use::pin);
    if (!found) return tl::unexpected(found.error());
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!kernel_.has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    const Owned* known = (*found)->entry();
    const Owned before = known == nullptr ? Owned{} : *known;
    (*found)->hold(Holder::pin, scope);
    write();
    const Target* after = find(targets_, name);
    if (after == nullptr) return fail(name + ": vanished", ENOENT);
    if (after->state == State::pinned) return {};
    if (Owned* entry = after->entry(); entry != nullptr) entry->hold(before.holder, before.note);
    const std::string reason = after->reason;
    write();
    return fail(name + ": " + reason, EIO);
}

Status Engine::unpin(const std::string& name) {
    look_at(name, edges_.files.unbound_mask());
    Owned* entry = edges_.store.find(name);
    if (entry == nullptr || !is_order(entry->holder))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    const Owned before = *entry;
    if (Target* target = find(targets_, name); target != nullptr)
        target->hold(Holder::policy);
    else
        entry->hold(Holder::policy);
    step_all();
    const Target* after = find(targets_, name);
    if (after == nullptr || after->stuck == 0) return {};
    // The baseline was not put back: the order stays in force, so that it can be ended later.
    const std::string reason = after->reason;
    after->entry()->hold(before.holder, before.note);
    write();
    return fail(name + ": " + reason, EIO);
}

Status Engine::revert(const std::optional<std::string>& name) {
    std::vector<std::string> names, ours;
    if (name) {
        if (const auto found = look_for(*name, Use::revert); !found) return tl::unexpected(found.error());
        names.push_back(*name);
    } else {
        if (const std::string why = observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        look_and_plan();
        // Also targets without a setting of ours: they would be planned on their own once @default is held.
        for (const auto& [each, target] : targets_)
            if (!target.external && target.now.untouchable.empty()) names.push_back(each);
        // Targets that could not be read since the start get the order, too; it waits until they can be read.
        for (Owned* entry : edges_.store.all())
            if (!entry->is_mask() && !targets_.contains(entry->name)) entry->hold(Holder::revert);
    }
    for (const std::string& each : names) {
        if (targets_.at(each).holds_ours()) ours.push_back(each);
        targets_.at(each).hold(Holder::revert);
    }
    step_all();  // @default must not move what was reverted
    for (const std::string& each : ours) {
        const Target* after = find(targets_, each);
        if (after != nullptr && !after->holds_ours()) reverts_++;
    }
    if (const Target* after = name ? find(targets_, *name) : nullptr; after != nullptr && after->holds_ours())
        return fail(*name + ": " + after->reason, EIO);
    return {};
}

// ---- slots: writes with the same checks and saves as all other writes

std::optional<Engine::Glance> Engine::glance(const std::string& name) {
    Target* target = find(targets_, name);
    if (target == nullptr) return {};
    const auto now = edges_.files.read(name, edges_.files.unbound_mask());
    if (!now || now->inode != target->now.inode || now->unread || now->effective.empty()) return {};
    target->now.effective = now->effective;
    return Glance{keys_.cpus_of(target->now), now->scope.word, now->scope.word != target->last.main};
}

Status Engine::may_try(const std::string& name) {
    return look_for(name, Use::compare).map([](Target*) {});
}

// The entries on disk say `slot` before the first write.
std::vector<Status> Engine::enter_slot(const std::vector<std::string>& names) {
    std::vector<Status> out;
    for (const std::string& name : names) {
        const Target* known = find(targets_, name);
        const ino_t inode = known == nullptr ? 0 : known->now.inode;
        Status may = known == nullptr ? fail(name + ": no such target", ENOENT) : may_try(name);
        if (may && targets_.at(name).now.inode != inode)
            may = fail(name + ": was replaced by another workqueue of the same name", ENODEV);
        if (may) {
            Target& target = targets_.at(name);
            target.make_entry().hold(Holder::slot);
            target.in_slot = true;
            target.held = target.now.scope.word;
        }
        out.push_back(std::move(may));
    }
    if (const auto saved = edges_.store.save(); !saved) {
        leave_slot(names);
        for (Status& each : out)
            if (each) each = tl::unexpected(saved.error().in("its baseline cannot be saved"));
        return out;
    }
    const Circumstances all = circumstances();
    for (std::size_t i = 0; i < names.size(); i++)
        if (out[i]) targets_.at(names[i]).show(decide_on(targets_.at(names[i]), all).shown());
    return out;
}

// Returns `done` if TO may be written. A value that changed since our last write is an external writer's,
// even if it is an arm's word or the baseline.
Outcome Engine::may_switch(const Switch& to) {
    using End = Outcome::Kind;
    Target* target = find(targets_, to.name);
    if (target == nullptr) return {End::gone, false, to.name + ": vanished", ENOENT};
    if (target->entry() == nullptr || !target->in_slot)
        return {End::permanent, false, "not in a slot", EINVAL};
    // A look noticed the external writer. leave_slot() puts back what is still ours.
    if (target->external) return {End::foreign, false, *target->external, 0};
    const Look seen = wq::look_at(edges_.files, *target->entry());
    if (!seen.scope) return {};  // the write will return the error
    target->now.scope = *seen.scope;
    if (seen.strict) target->now.strict = seen.strict;
    if (seen.found.word == Whose::foreign) return {End::foreign, false, seen.scope->word, 0};
    if (to.arm.strict && seen.found.strict == Whose::foreign)
        return {End::foreign, false, *seen.strict ? "strict" : "not strict", 0, Knob::strict};
    return {};
}

// Between two windows the entries on disk have exactly the words that are in place.
std::vector<Switched> Engine::switch_to(const std::vector<Switch>& switches,
                                        const std::function<std::uint64_t()>& clock) {
    std::vector<Switched> out(switches.size());
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        out[i].outcome = may_switch(switches[i]);
        if (out[i].outcome.kind == Outcome::Kind::done)
            targets_.at(name).entry()->announce({arm.word, arm.strict});
    }
    const auto saved = edges_.store.save();
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        Outcome& outcome = out[i].outcome;
        if (outcome.kind == Outcome::Kind::done && !saved)
            outcome = {Outcome::Kind::transient, false, saved.error().in("its baseline cannot be saved").text,
                       saved.error().code};
        Target* target = find(targets_, name);
        if (target == nullptr) continue;
        if (outcome.kind == Outcome::Kind::done)
            outcome = reconciler_.rewrite(*target, arm, clock, out[i].took);
        if (!target->in_slot) continue;
        if (outcome.kind == Outcome::Kind::done) {
            target->wrote({arm.word, arm.strict});
            target->now.scope.effective = arm.scope;
            continue;
        }
        target->in_slot = false;
        if (!target->external && target->entry() != nullptr)
            reconciler_.take_failure(*target, arm.word, outcome);
    }
    if (const auto again = edges_.store.save(); !again)
        log_.write_once(LOG_ERR, Event::none, again.error().text);
    return out;
}

void Engine::leave_slot(const std::vector<std::string>& names) {
    bool any = false;
    for (const std::string& name : names) {
        Target* target = find(targets_, name);
        if (target == nullptr) continue;
        any = true;
        target->in_slot = false;
        if (target->external && target->holds_ours()) {
            target->entry()->announce_baseline();
            (void)edges_.store.save();  // it is put back even if this fails
            reconciler_.put_half_back(*target);
        }
        make_step(*target);
    }
    if (!any) return;
    write();
    for (const std::string& name : names)
        if (Target* target = find(targets_, name); target != nullptr) target->held.clear();
}

}  // namespace wq
