// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/slot_writer.h"

#include <syslog.h>
#include <cerrno>

#include "targets/gate.h"

namespace wq {

// The entries on disk say `slot` before the first write.
std::vector<Status> SlotWriter::enter(const std::vector<std::string>& names) {
    std::vector<Status> out;
    for (const std::string& name : names) {
        const Target* known = targets_.find(name);
        const ino_t inode = known == nullptr ? 0 : known->now.inode;
        auto no = ask(targets_, name, Use::compare);
        if (!no && targets_.all().at(name).now.inode != inode)
            no = No{"was replaced by another workqueue of the same name", ENODEV};
        out.push_back(no ? Status(no->error_of(name)) : Status());
        if (no) continue;
        Target& target = targets_.all().at(name);
        target.make_entry().hold(Holder::slot);
        target.in_slot = true;
        target.held = target.now.scope.word;
    }
    if (const auto saved = targets_.edges().store.save(); !saved) {
        leave(names);
        for (Status& each : out)
            if (each) each = tl::unexpected(saved.error().in("its baseline cannot be saved"));
        return out;
    }
    const Circumstances all = engine_.circumstances();
    for (std::size_t i = 0; i < names.size(); i++)
        if (out[i]) targets_.all().at(names[i]).show(decide(targets_.all().at(names[i]), all).shown());
    return out;
}

// Returns `done` if ARM may be written. A value that changed since our last write is an external writer's,
// even if it is an arm's word or the baseline.
Outcome SlotWriter::may_switch(Target* target, const Arm& arm) {
    using End = Outcome::Kind;
    if (target == nullptr) return {End::gone, false, "vanished", ENOENT};
    if (target->entry() == nullptr || !target->in_slot)
        return {End::permanent, false, "not in a slot", EINVAL};
    // A look noticed the external writer. leave() puts back what is still ours.
    if (target->external) return {End::foreign, false, *target->external, 0};
    const Look seen = look_at(targets_.edges().files, *target->entry());
    if (!seen.scope) return {};  // the write will return the error
    target->now.scope = *seen.scope;
    if (seen.strict) target->now.strict = seen.strict;
    if (seen.found.word == Whose::foreign) return {End::foreign, false, seen.scope->word, 0};
    if (arm.strict && seen.found.strict == Whose::foreign)
        return {End::foreign, false, *seen.strict ? "strict" : "not strict", 0, Knob::strict};
    return {};
}

// Between two windows the entries on disk have exactly the words that are in place.
std::vector<Outcome> SlotWriter::switch_to(const std::vector<std::pair<std::string, Arm>>& switches,
                                           const std::function<std::uint64_t()>& clock) {
    using End = Outcome::Kind;
    std::vector<Outcome> out;
    for (const auto& [name, arm] : switches) {
        Target* target = target_of(targets_, name);
        out.push_back(may_switch(target, arm));
        if (out.back().kind == End::done) target->entry()->announce({arm.word(), arm.strict});
    }
    const auto saved = targets_.edges().store.save();
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        Outcome& outcome = out[i];
        Target* target = target_of(targets_, name);
        if (target == nullptr) continue;
        if (outcome.kind == End::done && !saved)
            outcome = {End::transient, false, saved.error().in("its baseline cannot be saved").text,
                       saved.error().code};
        if (outcome.kind == End::done) outcome = engine_.reconciler().rewrite(*target, arm, clock);
        if (!target->in_slot) continue;
        if (outcome.kind == End::done) {
            target->wrote({arm.word(), arm.strict});
            target->now.scope.effective = arm.scope;
            continue;
        }
        target->in_slot = false;
        if (!target->external && target->entry() != nullptr)
            engine_.reconciler().take_failure(*target, arm.word(), outcome);
    }
    if (const auto again = targets_.edges().store.save(); !again)
        targets_.log().write_once(LOG_ERR, Event::none, again.error().text);
    return out;
}

void SlotWriter::leave(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        Target* target = target_of(targets_, name);
        if (target == nullptr) continue;
        target->in_slot = false;
        if (target->external && target->holds_ours()) {
            target->entry()->announce_baseline();
            (void)targets_.edges().store.save();  // it is put back even if this fails
            engine_.reconciler().put_half_back(*target);
        }
        targets_.make_step(*target);
    }
    engine_.write();
    for (const std::string& name : names)
        if (Target* target = target_of(targets_, name); target != nullptr) target->held.clear();
}

}  // namespace wq
