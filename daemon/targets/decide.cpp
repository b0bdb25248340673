// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/decide.h"

#include <fmt/format.h>

#include "machine/udev.h"
#include "targets/ownership.h"

namespace wq {

Wish baseline(State state, std::string reason) {
    return {{state, std::move(reason)}};
}

Wish hands_off(Shown shown) {
    Wish out{std::move(shown)};
    out.hands_off = true;
    return out;
}

namespace {

// The state of a target that is left at its baseline, from its plan alone.
State state_of(Finding finding) {
    switch (finding) {
        case Finding::untouchable:
        case Finding::unmanaged:
            return State::unmanaged;
        case Finding::leave:
        case Finding::followers:
        case Finding::pods_unknown:
            return State::leave;
        case Finding::unsupported:
            return State::unsupported;
        case Finding::in_place:
            return State::as_planned;
        case Finding::change:
            return State::waiting;
    }
    return State::unmanaged;
}

struct Facts {
    const Target& target;
    const Owned* entry;
    const Circumstances& all;
};

Wish refused(const Refusal& refusal) {
    return baseline(refusal.as, refusal.reason);
}

// The strictness to put back; empty if none of ours may be in place.
std::optional<bool> strict_before(const Owned* entry) {
    return owns_strict(entry) ? std::optional(entry->strict->baseline == "1") : std::nullopt;
}

Wish for_arm(const Facts& f, State state, std::string reason, const Arm& arm) {
    if (const Refusal* why = f.target.refusal_of(arm.word)) return refused(*why);
    // If we wrote a strictness and no rule names one any more, its baseline is put back.
    return {{state, std::move(reason)}, arm.word, arm.strict ? arm.strict : strict_before(f.entry)};
}

// A pin sets only the scope; a strictness that we wrote is put back. While the pods are unknown nothing new
// is written, not even for an earlier order.
Wish by_pin(const Facts& f) {
    if (const Refusal* why = f.target.refusal_of(f.entry->note)) return refused(*why);
    return {held_by_order(*f.entry), f.entry->note, strict_before(f.entry), !f.all.pods_unknown.empty()};
}

bool is_compared(const Facts& f) {
    return f.target.step.course == Course::dense && f.all.waiting.compared.contains(f.target.now.name);
}

// The wish while the ledger has no decision.
Wish by_waiting(const Facts& f) {
    const Step& step = f.target.step;
    const Planned& plan = f.target.plan;
    const Arm planned = planned_arm(as_before_us(f.target, f.entry), plan);
    const std::string& next = step.next ? step.next->candidate.word : planned.word;
    if (const Refusal* why = f.target.refusal_of(next)) return refused(*why);
    std::string reason = fmt::format("{}; plan: {}", f.all.waiting.why, plan.reason);
    if (const Refusal* why = f.target.refusal_of(planned.word))
        reason += fmt::format("; '{}' was refused: {}", planned.word, why->reason);
    return baseline(is_compared(f) ? State::comparing : State::waiting, std::move(reason));
}

Wish by_step(const Facts& f) {
    const Step& step = f.target.step;
    const bool goes_on = step.course == Course::dense || step.course == Course::sparse;
    const std::string& unjudged = f.all.waiting.unjudged;
    const std::string said = step.said + (!goes_on           ? ""
                                          : unjudged.empty() ? "; " + f.all.waiting.why
                                                             : "; not watched: " + unjudged);
    switch (step.kind) {
        case Step::Kind::set:
            return for_arm(f, is_compared(f) ? State::comparing : State::set, said, *step.hold);
        case Step::Kind::kept:
            return for_arm(f, is_compared(f) ? State::comparing : State::kept, said, *step.hold);
        case Step::Kind::reverted: {
            const State state = is_compared(f) ? State::comparing
                                : goes_on      ? State::waiting
                                               : State::reverted;
            return step.hold ? for_arm(f, state, said, *step.hold) : baseline(state, said);
        }
        case Step::Kind::waiting:
            break;
    }
    return by_waiting(f);
}

Wish by_plan(const Facts& f) {
    const Planned& plan = f.target.plan;
    const Step& step = f.target.step;
    Wish out = baseline(state_of(plan.finding), plan.reason);
    out.lacks_scope = plan.finding == Finding::unsupported;
    if (plan.finding == Finding::pods_unknown) {
        // An arm of a slot is not a decision: what was in force before the slot comes back, a kept arm or the
        // baseline.
        if (f.entry != nullptr && f.entry->holder == Holder::slot) {
            const std::string& held = f.target.held;
            if (held.empty() || held == f.entry->main.baseline) return out;
            out.state = State::set;
            out.word = held;
            return out;
        }
        if (holds_ours(f.target, f.entry)) out.state = State::set;
        out.hands_off = true;
        return out;
    }
    const bool decided = step.kind != Step::Kind::waiting || step.next;
    return plan.finding == Finding::change || decided ? by_step(f) : out;
}

}  // namespace

Wish decide(const Target& target, const Owned* entry, const Circumstances& all) {
    const Facts f{target, entry, all};
    const Planned& plan = target.plan;
    const Holder holder = holder_of(target, entry);
    if (holder == Holder::external) return hands_off(left_to_writer(target));
    if (!all.observing.empty())
        return baseline(state_of(plan.finding), plan.finding == Finding::change
                                                    ? "observing: " + all.observing + "; plan: " + plan.reason
                                                    : plan.reason);
    switch (holder) {
        case Holder::udev:  // what an earlier daemon wrote stays, too
            return hands_off({State::waiting, kNotProcessedByUdev});
        case Holder::slot:
            return hands_off({State::comparing, plan.reason});
        case Holder::pin:
            return by_pin(f);
        case Holder::revert:
            return {held_by_order(*entry)};
        default:
            break;
    }
    return by_plan(f);
}

bool Wish::sets(const Managed& item) const {
    const Values now = item.values();
    return wants() && (now.main != word || (strict && strict != now.strict));
}

Shown held_by_order(const Owned& entry) {
    return {entry.holder == Holder::pin ? State::pinned : State::reverted,
            entry.must_stay() ? entry.note : "by an operator's order"};
}

Shown left_to_writer(const Managed& item) {
    const std::string what =
        item.file() == Knob::mask ? "CPUs " + *item.external : "'" + *item.external + "'";
    return {State::external, "an external writer wrote " + what};
}

Shown as_found(const Managed& item, const Owned* entry, const Wish& wish, const std::string& unsaved) {
    if (wish.hands_off) return wish.shown();
    if (item.is_stuck()) return {State::quarantined, item.stuck_why};
    if (wish.sets(item)) {
        const char* next = item.failures > 0 ? "about to be tried again: " : "about to be applied: ";
        return {State::waiting, unsaved.empty() ? next + wish.reason : unsaved};
    }
    if (!wish.word && holds_ours(item, entry)) return {State::set, "left in force"};
    return wish.shown();
}

}  // namespace wq
