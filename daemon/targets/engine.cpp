// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/engine.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "machine/kernel_info.h"
#include "owned/restore.h"

namespace wq {
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
    const Circumstances all = circumstances();
    std::vector<Job> jobs;
    for (auto& [name, target] : targets_) jobs.push_back({&target, decide_on(target, all)});
    std::ranges::stable_sort(jobs, {}, [](const Job& job) {
        return job.item->name() != kDefaultTarget ? 1 : job.wish.word ? 2 : 0;
    });
    reconciler_.run(jobs, all.observing);
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
        // Includes targets without a setting of ours: followers would be planned on their own once @default
        // is held.
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
