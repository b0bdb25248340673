// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/target.h"

#include <fmt/format.h>

#include "machine/udev.h"

namespace wq {

Owned& Managed::make_entry() {
    Owned* known = entry();
    return known != nullptr ? *known : store->put(entry_now());
}

bool Managed::holds_ours() const {
    const Owned* known = entry();
    return known != nullptr && known->whose(values()).is_ours();
}

bool Managed::owns_strict() const {
    const Owned* known = entry();
    return known != nullptr && known->strict && known->strict->may_be_ours();
}

// Only our writes change the word and the strictness of a target that we manage. Any other value is an
// external writer's, even if it is one of our own words: it is not the one that we wrote last. A strictness
// counts if we wrote it before, or if a rule asks for another one.
std::optional<std::string> Managed::notice(std::optional<bool> strict) {
    const Values now{values().main, strict};
    if (now.main.empty()) return {};  // it could not be read
    std::optional<std::string> news;
    if (Owned* known = entry(); known != nullptr) {
        const auto wanted = wanted_strict();
        const bool strict_counts = strict && (owns_strict() || (wanted && wanted != strict));
        const bool since_before = known->external && !external;  // known from before the start
        const bool word_is_ours = known->main.whose(now.main) == Whose::ours;
        const Found found = known->settle(now);
        const bool of_strict =
            found.word != Whose::foreign && strict_counts && found.strict == Whose::foreign;
        const bool shows_strict = of_strict || (since_before && word_is_ours);
        const std::string text = shows_strict ? plain(Knob::strict, text_of_strict(values().strict == true))
                                              : plain(file(), now.main);
        if (since_before)
            external = text;
        else if (!external && (of_strict || found.word == Whose::foreign))
            news = text;
    } else if (!external) {
        news = notice_change();
    }
    last = {now.main, strict ? strict : last.strict};
    return news;
}

// Nothing was written yet: the baseline is what was there before the external writer wrote.
std::optional<std::string> Managed::notice_change() {
    if (!is_managed() || last.main.empty()) return {};
    const Values now = values();
    Owned before = entry_now();
    const bool word = !before.main.same(now.main, last.main);
    const bool strict = wanted_strict() && last.strict && now.strict && now.strict != last.strict;
    if (!word && !strict) return {};
    before.main.baseline = last.main;
    if (!last.strict) before.strict.reset();
    if (before.strict) before.strict->baseline = text_of_strict(*last.strict);
    store->put(std::move(before));
    return word ? plain(file(), now.main) : plain(Knob::strict, text_of_strict(*now.strict));
}

void Target::see(const Look& look) {
    last = {look.scope ? look.scope->word : "", look.strict};
    if (look.scope) now.scope = *look.scope;
    if (look.strict) now.strict = look.strict;
}

void Target::wrote(const Values& values) {
    now.scope = {values.main, values.main == "default" ? before : scope_named(values.main)};
    if (values.strict) now.strict = values.strict;
    last = {values.main, values.strict ? values.strict : last.strict};
}

// An entry that says `slot` while no slot runs was left by an earlier daemon: the policy holds it.
Holder Target::holder() const {
    if (external) return Holder::external;
    if (now.untouchable == kNotProcessedByUdev) return Holder::udev;
    if (in_slot) return Holder::slot;
    const Owned* known = entry();
    return known != nullptr && is_order(known->holder) ? known->holder : Holder::policy;
}

void Target::hold(Holder by, const std::string& scope) {
    make_entry().hold(by, scope);
    std::erase_if(refused, [&](const Refusal& one) { return one.word == scope; });
    in_slot = false;
    stuck = 0;
}

Workqueue Target::before_us() const {
    Workqueue out = now;
    if (const Owned* known = entry(); known != nullptr && !external) {
        out.scope = {known->main.baseline, scope_named(known->main.baseline)};
        if (owns_strict()) out.strict = known->strict->baseline == "1";
    }
    return out;
}

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
Wish by_waiting(const Target& target, bool compared) {
    const Arm planned = planned_arm(target.before_us(), target.plan);
    const std::string next = (target.step.next ? target.step.next->candidate : planned).word();
    if (const Refusal* why = target.refusal_of(next)) return baseline(why->as, why->reason);
    std::string reason = "plan: " + target.plan.reason;
    if (const Refusal* why = target.refusal_of(planned.word()))
        reason += fmt::format("; '{}' was refused: {}", planned.word(), why->reason);
    return baseline(compared ? State::comparing : State::waiting, std::move(reason));
}

Wish by_step(const Target& target, const Waiting& waiting) {
    const Step& step = target.step;
    const bool compared = step.course == Course::dense && waiting.compared.contains(target.now.name);
    if (step.kind == Step::Kind::waiting) return by_waiting(target, compared);
    const bool goes_on = step.course == Course::dense || step.course == Course::sparse;
    const State state = compared                        ? State::comparing
                        : step.kind == Step::Kind::set  ? State::set
                        : step.kind == Step::Kind::kept ? State::kept
                        : goes_on                       ? State::waiting
                                                        : State::reverted;
    if (!step.hold) return baseline(state, step.said);
    return to_write(target, {state, step.said}, step.hold->word(), step.hold->strict);
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
    return baseline(state_of(plan.finding), plan.reason);
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

void leave_to_writer(Managed& item, const std::string& text, TargetLog& log) {
    Owned& entry = *item.entry();
    entry.external = true;
    entry.end_slot();
    item.external = text;
    item.show(left_to_writer(item));
    const FileWords& words = words_of(entry);
    log.write(LOG_NOTICE, words.external, item.name(),
              fmt::format("{}holds {}, which an external writer wrote; it is left alone until the baseline "
                          "is back and the policy is reloaded",
                          words.label, item.file() == Knob::mask ? "CPUs " + text : "'" + text + "'"),
              {{words.new_field, plain(item.file(), item.values().main)}});
}

}  // namespace wq
