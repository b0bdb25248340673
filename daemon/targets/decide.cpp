// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/decide.h"

#include <fmt/format.h>

#include "machine/udev.h"

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
    using F = Finding;
    const auto is = [&](auto... any) { return ((finding == any) || ...); };
    return is(F::leave, F::followers, F::pods_unknown) ? State::leave
           : is(F::unsupported)                        ? State::unsupported
           : is(F::in_place)                           ? State::as_planned
           : is(F::change)                             ? State::waiting
                                                       : State::unmanaged;
}

// The wish for WORD; the baseline if the kernel refused it.
Wish to_write(const Target& target, Shown shown, const std::string& word, std::optional<bool> strict) {
    if (const Refusal* why = target.refusal_of(word)) return baseline(why->as, why->reason);
    // If we wrote a strictness and nobody names one any more, its baseline is put back.
    if (!strict && target.owns_strict()) strict = target.entry()->strict->baseline == "1";
    return {std::move(shown), word, strict};
}

// The wish while the ledger has no decision.
Wish by_waiting(const Target& target, const Waiting& waiting, bool compared) {
    const Arm planned = planned_arm(target.before_us(), target.plan);
    const std::string& next = target.step.next ? target.step.next->candidate.word : planned.word;
    if (const Refusal* why = target.refusal_of(next)) return baseline(why->as, why->reason);
    std::string reason = fmt::format("{}; plan: {}", waiting.why, target.plan.reason);
    if (const Refusal* why = target.refusal_of(planned.word))
        reason += fmt::format("; '{}' was refused: {}", planned.word, why->reason);
    return baseline(compared ? State::comparing : State::waiting, std::move(reason));
}

Wish by_step(const Target& target, const Waiting& waiting) {
    const Step& step = target.step;
    const bool compared = step.course == Course::dense && waiting.compared.contains(target.now.name);
    if (step.kind == Step::Kind::waiting) return by_waiting(target, waiting, compared);
    const bool goes_on = step.course == Course::dense || step.course == Course::sparse;
    std::string said = step.said;
    if (goes_on) said += waiting.unjudged.empty() ? "; " + waiting.why : "; not watched: " + waiting.unjudged;
    const State state = compared                        ? State::comparing
                        : step.kind == Step::Kind::set  ? State::set
                        : step.kind == Step::Kind::kept ? State::kept
                        : goes_on                       ? State::waiting
                                                        : State::reverted;
    if (!step.hold) return baseline(state, std::move(said));
    return to_write(target, {state, std::move(said)}, step.hold->word, step.hold->strict);
}

// Nothing new is written, and nothing is taken back. But an arm of a slot is not a decision: what was in
// force before the slot comes back, a kept arm or the baseline.
Wish by_unknown_pods(const Target& target) {
    const Owned* entry = target.entry();
    Wish out = baseline(State::leave, target.plan.reason);
    out.hands_off = entry == nullptr || entry->holder != Holder::slot;
    if (out.hands_off) {
        if (target.holds_ours()) out.state = State::set;
    } else if (!target.held.empty() && target.held != entry->main.baseline) {
        out.state = State::set;
        out.word = target.held;
    }
    return out;
}

Wish by_plan(const Target& target, const Waiting& waiting) {
    const Planned& plan = target.plan;
    if (plan.finding == Finding::pods_unknown) return by_unknown_pods(target);
    const bool decided = target.step.kind != Step::Kind::waiting || target.step.next;
    if (plan.finding == Finding::change || decided) return by_step(target, waiting);
    Wish out = baseline(state_of(plan.finding), plan.reason);
    out.lacks_scope = plan.finding == Finding::unsupported;
    return out;
}

}  // namespace

Wish decide(const Target& target, const Circumstances& all) {
    const Planned& plan = target.plan;
    const Holder holder = target.holder();
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
        case Holder::pin: {  // while the pods are unknown nothing new is written, not even for an order
            const Owned& entry = *target.entry();
            Wish out = to_write(target, held_by_order(entry), entry.note, {});
            out.hands_off = out.word && !all.pods_unknown.empty();
            return out;
        }
        case Holder::revert:
            return {held_by_order(*target.entry())};
        default:
            return by_plan(target, all.waiting);
    }
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

Shown as_found(const Managed& item, const Wish& wish, const std::string& unsaved) {
    if (wish.hands_off) return wish.shown();
    if (item.is_stuck()) return {State::quarantined, item.stuck_why};
    if (wish.sets(item)) {
        const char* next = item.failures > 0 ? "about to be tried again: " : "about to be applied: ";
        return {State::waiting, unsaved.empty() ? next + wish.reason : unsaved};
    }
    if (!wish.word && item.holds_ours()) return {State::set, "left in force"};
    return wish.shown();
}

}  // namespace wq
