// SPDX-License-Identifier: LGPL-2.1-or-later
// The engine's functions for slots: writes with the same checks and saves as all other writes.
#include <syslog.h>

#include <cerrno>

#include "targets/engine.h"

namespace wq {

std::optional<Engine::Glance> Engine::glance(const std::string& name) {
    const auto found = targets_.find(name);
    if (found == targets_.end()) return {};
    Workqueue& target = found->second.now;
    const auto now = edges_.files.read(name, edges_.files.unbound_mask());
    if (!now || now->inode != target.inode || now->unread || now->effective.empty()) return {};
    target.effective = now->effective;
    return Glance{keys_.cpus_of(target), now->scope.word, now->scope.word != found->second.last.main};
}

Status Engine::may_try(const std::string& name) {
    const auto found = look_for_order(name);
    if (!found) return tl::unexpected(found.error());
    const Target& target = **found;
    if (const std::string why = why_default_stays(name); !why.empty()) return fail(name + ": " + why, EPERM);
    const Holder holder = ownership_.holder_of(target);
    if (holder == Holder::pin) return fail(name + ": pinned; unpin it first", EBUSY);
    if (holder == Holder::revert) {
        const Owned& entry = *ownership_.entry(name);
        return fail(name + ": " +
                        (entry.must_stay() ? entry.note : "reverted by an operator's order; unpin it first"),
                    EBUSY);
    }
    if (target.unread) return fail(name + ": cannot be read now", EAGAIN);
    if (const std::string& why = inventory_.pods_unknown(); !why.empty())
        return fail("pods unknown: " + why, EPERM);
    if (!target.now.scope.effective) return fail(name + ": wq-tuned does not know its current scope", EINVAL);
    return {};
}

// The entries on disk say `slot` before the first write.
std::vector<Status> Engine::enter_slot(const std::vector<std::string>& names) {
    std::vector<Status> out;
    for (const std::string& name : names) {
        const auto known = targets_.find(name);
        const ino_t inode = known == targets_.end() ? 0 : known->second.now.inode;
        Status may = known == targets_.end() ? fail(name + ": no such target", ENOENT) : may_try(name);
        if (may && targets_.at(name).now.inode != inode)
            may = fail(name + ": was replaced by another workqueue of the same name", ENODEV);
        if (may) {
            Target& target = targets_.at(name);
            ownership_.entry_for(target).hold(Holder::slot);
            target.in_slot = true;
            target.held = target.now.scope.word;
        }
        out.push_back(std::move(may));
    }
    if (const auto saved = ownership_.save(); !saved) {
        leave_slot(names);
        for (Status& each : out)
            if (each) each = tl::unexpected(saved.error().in("its baseline cannot be saved"));
        return out;
    }
    refresh_circumstances();
    for (std::size_t i = 0; i < names.size(); i++)
        if (out[i]) targets_.at(names[i]).show(decide_on(targets_.at(names[i])).shown());
    return out;
}

// A value that changed since our last write is an external writer's, even if it is an arm's word or the
// baseline.
Outcome Engine::found_foreign(Target& target, const Arm& arm) {
    const Look seen = wq::look_at(edges_.files, *ownership_.entry(target.now.name));
    if (!seen.scope) return {};  // the write will return the error
    target.now.scope = *seen.scope;
    if (seen.strict) target.now.strict = seen.strict;
    if (seen.found.word == Whose::foreign) return {Outcome::Kind::foreign, false, seen.scope->word, 0};
    if (arm.strict && seen.found.strict == Whose::foreign)
        return {Outcome::Kind::foreign, false, *seen.strict ? "strict" : "not strict", 0, Knob::strict};
    return {};
}

// Returns `done` if TO may be written.
Outcome Engine::may_switch(const Switch& to) {
    const auto found = targets_.find(to.name);
    if (found == targets_.end()) return {Outcome::Kind::gone, false, to.name + ": vanished", ENOENT};
    Target& target = found->second;
    if (ownership_.entry(to.name) == nullptr || !target.in_slot)
        return {Outcome::Kind::permanent, false, "not in a slot", EINVAL};
    // A look noticed the external writer. leave_slot() puts back what is still ours.
    if (target.external) return {Outcome::Kind::foreign, false, *target.external, 0};
    return found_foreign(target, to.arm);
}

void Engine::end_switch(Target& target, const Arm& arm, const Outcome& outcome) {
    if (outcome.kind == Outcome::Kind::done) {
        target.wrote({arm.word, arm.strict});
        target.now.scope.effective = arm.scope;
        return;
    }
    target.in_slot = false;
    if (target.external || ownership_.entry(target.now.name) == nullptr) return;
    reconciler_.take_failure(target, arm.word, outcome);
}

// Between two windows the entries on disk have exactly the words that are in place.
std::vector<Switched> Engine::switch_to(const std::vector<Switch>& switches,
                                        const std::function<std::uint64_t()>& clock) {
    std::vector<Switched> out(switches.size());
    for (std::size_t i = 0; i < switches.size(); i++) {
        out[i].outcome = may_switch(switches[i]);
        if (out[i].outcome.kind != Outcome::Kind::done) continue;
        ownership_.entry(switches[i].name)->announce({switches[i].arm.word, switches[i].arm.strict});
    }
    const auto saved = ownership_.save();
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        Outcome& outcome = out[i].outcome;
        if (outcome.kind == Outcome::Kind::done && !saved)
            outcome = {Outcome::Kind::transient, false, saved.error().in("its baseline cannot be saved").text,
                       saved.error().code};
        const auto found = targets_.find(name);
        if (found == targets_.end()) continue;
        Target& target = found->second;
        if (outcome.kind == Outcome::Kind::done)
            outcome = reconciler_.rewrite(target, arm, clock, out[i].took);
        if (target.in_slot) end_switch(target, arm, outcome);
    }
    if (const auto again = ownership_.save(); !again)
        log_.write_once(LOG_ERR, Event::none, again.error().text);
    return out;
}

void Engine::leave_slot(const std::vector<std::string>& names) {
    bool any = false;
    for (const std::string& name : names) {
        const auto found = targets_.find(name);
        if (found == targets_.end()) continue;
        any = true;
        Target& target = found->second;
        target.in_slot = false;
        if (target.external && ownership_.holds_ours(target)) {
            ownership_.entry(name)->announce_baseline();
            (void)ownership_.save();  // it is put back even if this fails
            reconciler_.put_half_back(target);
        }
        make_step(target);
    }
    if (!any) return;
    write();
    for (const std::string& name : names)
        if (const auto found = targets_.find(name); found != targets_.end()) found->second.held.clear();
}

}  // namespace wq
