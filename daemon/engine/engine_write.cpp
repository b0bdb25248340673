// SPDX-License-Identifier: LGPL-2.1-or-later
// What each target shall hold, and making it so.
#include <fmt/format.h>
#include <syslog.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "kernel/udev.h"

namespace wq {
namespace {

// The state that a plan alone gives a target that is left at its baseline.
State state_of(Finding finding) {
    switch (finding) {
        case Finding::untouchable:
        case Finding::unmanaged:
            return State::unmanaged;
        case Finding::leave:
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

// The rule that a plan of TARGET follows, or nullptr.
const Origin* rule_of(const Workqueue& target, const Policy& policy) {
    if (target.kind == Kind::default_scope) return &policy.default_scope.origin;
    const WorkqueueRule* rule = policy.rule_for(target.name);
    return rule == nullptr ? nullptr : &rule->origin;
}

// ENTRY as far as TARGET was like it when we last looked: what has changed since, before WORD is written, is
// somebody else's, the baseline included.
BaselineEntry as_seen(const BaselineEntry& entry, const Target& target, const std::string& word) {
    BaselineEntry out = entry;
    if (target.last_word.empty() || target.now.scope.word.empty()) return out;  // the last look failed
    out.may_hold.clear();
    if (entry.whose(target.now.scope.word) != Whose::foreign) out.allow(target.now.scope.word);
    out.allow(word);
    if (const std::string other = misparse_of(word); !other.empty()) out.allow(other);
    // A strictness that is only announced, and not in place yet, says nothing of the word.
    if (out.may_strict && !target.now.strict)
        out.announce_baseline();
    else if (out.may_strict != target.now.strict)
        out.may_strict.reset();
    return out;
}

bool failed(const Outcome& outcome) {
    return outcome.kind == Outcome::Kind::permanent || outcome.kind == Outcome::Kind::transient;
}

}  // namespace

Tuner::Wish Tuner::wish_for(Target& target) {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    const auto set = [&](State state, std::string reason) {
        target.state = state;
        target.reason = std::move(reason);
    };
    if (target.external) {
        set(State::external, fmt::format("an external writer wrote '{}'", target.external_text));
        return {.hands_off = true};
    }
    if (const std::string why = observing(); !why.empty()) {
        const bool change = target.plan.finding == Finding::change;
        set(state_of(target.plan.finding), change ? "observing: " + why : target.plan.reason);
        return {};
    }
    // A rule may set it aside; what an earlier daemon left in it stays until that is known.
    if (!target.opted_out && target.now.untouchable == kNotProcessedByUdev) {
        set(State::waiting, kNotProcessedByUdev);
        return {.hands_off = true};
    }
    if (target.on_trial) {
        set(State::trial, target.plan.reason);
        return {.hands_off = true};
    }
    if (const auto scope = pinned_scope(entry)) {
        if (target.refuses(*scope)) {
            set(target.refused->as, target.refused->reason);
            return {};
        }
        set(State::pinned, "by an operator's order");
        // A pin holds a scope, and no strictness: one of ours goes back. No new writes while pods are
        // unknown, on an old order either.
        return {.word = *scope,
                .strict = entry->may_strict ? entry->strict : std::nullopt,
                .hands_off = !pods_unknown_.empty()};
    }
    if (is_reverted(entry)) {
        set(State::reverted, "by an operator's order");
        return {};
    }
    return wish_by_plan(target);
}

Tuner::Wish Tuner::wish_by_plan(Target& target) {
    const Planned& plan = target.plan;
    target.state = state_of(plan.finding);
    target.reason = plan.reason;
    if (plan.finding == Finding::unsupported)
        if (const Origin* rule = rule_of(target.now, policy_))
            say_once(LOG_NOTICE, Event::unsupported, fmt::format("{}: {}", rule->text(), plan.reason));
    if (plan.finding == Finding::pods_unknown) {
        // What a trial left in place was never decided upon.
        if (is_on_trial(edges_.store.find(target.now.name))) return {};
        if (holds_ours(target)) target.state = State::applied;
        return {.hands_off = true};
    }
    const Step::Kind known = target.step.kind;
    if (plan.finding == Finding::change || known != Step::Kind::waiting || target.step.trial)
        return wish_by_step(target);
    return {};
}

Tuner::Wish Tuner::wish_by_step(Target& target) {
    const Step& step = target.step;
    const bool compared = step.course == Course::dense && compared_.contains(target.now.name);
    const bool goes_on = step.course == Course::dense || step.course == Course::sparse;
    const std::string again = goes_on ? "; " + waiting_why_ : "";
    switch (step.kind) {
        case Step::Kind::kept:
            target.reason = step.said + again;
            return wish_for_arm(target, compared ? State::trial : State::kept, *step.hold);
        case Step::Kind::reverted:
            target.state = compared ? State::trial : goes_on ? State::waiting : State::reverted;
            target.reason = step.said + again;
            if (step.hold) return wish_for_arm(target, target.state, *step.hold);
            return {};
        case Step::Kind::waiting:
            break;
    }
    if (policy_.apply_unjudged && target.plan.finding == Finding::change)
        return wish_for_arm(target, State::applied, planned_arm(as_before_us(target), target.plan));
    const Arm next = step.trial ? step.trial->candidate : planned_arm(as_before_us(target), target.plan);
    if (target.refuses(next.word)) return wish_for_arm(target, State::waiting, next);
    target.state = compared ? State::trial : State::waiting;
    target.reason = fmt::format("{}; plan: {}", waiting_why_, target.plan.reason);
    return {};
}

Tuner::Wish Tuner::wish_for_arm(Target& target, State state, const Arm& arm) {
    if (target.refuses(arm.word)) {
        target.state = target.refused->as;
        target.reason = target.refused->reason;
        return {};
    }
    target.state = state;
    // A strictness of ours that no rule names any more goes back.
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    const bool strict_is_ours = entry != nullptr && entry->may_strict;
    return {.word = arm.word, .strict = arm.strict || !strict_is_ours ? arm.strict : entry->strict};
}

// All that is to be written is announced on disk before the first write, and settled there after the last, in
// one go each: a thousand targets cost two saves.
void Tuner::apply_wishes() {
    std::vector<std::pair<std::string, Wish>> wishes;
    for (auto& [name, target] : targets_) {
        wishes.emplace_back(name, wish_for(target));
        target.decided = true;
        const Wish& wish = wishes.back().second;
        if (wish.word && !wish.hands_off) target.stuck = 0;  // no longer to be put back
        if (wish.word && !wish.hands_off && !is_so(target, wish)) {
            announce(target, wish);
            continue;
        }
        target.failures = 0;  // no try is left to be made
        if (BaselineEntry* entry = edges_.store.find(name); goes_back(target, wish) && entry != nullptr)
            entry->announce_baseline();
    }
    const auto saved = edges_.store.save();
    unsaved_ = saved ? "" : saved.error().in("its baseline cannot be saved").text;
    if (!saved) say_once(LOG_ERR, Event::baseline_broken, saved.error().in("no new settings").text);
    for (const auto& [name, wish] : wishes) {
        Target& target = targets_.at(name);
        // Of what is somebody else's, a plan's half stays until the end, but not through a kill switch.
        if (target.external && goes_back(target, wish)) {
            (void)restore(edges_.files, *edges_.store.find(name));
            look_again(target);
        }
        if (wish.hands_off) continue;
        if (!wish.word) {
            put_back(target);  // what is put back was on disk before it was written
        } else if (saved) {
            carry_out(target, wish);
        } else if (!is_so(target, wish)) {
            target.state = State::waiting;
            target.reason = unsaved_;
        }
    }
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
    if (const auto again = edges_.store.save(); !again) say_once(LOG_ERR, Event::none, again.error().text);
}

bool Tuner::is_so(const Target& target, const Wish& wish) {
    return target.now.scope.word == wish.word && (!wish.strict || wish.strict == target.now.strict);
}

// Whether what is ours in TARGET is about to be put back.
bool Tuner::goes_back(const Target& target, const Wish& wish) const {
    if (target.external) return !observing().empty() && holds_ours(target);
    return !wish.hands_off && !wish.word && target.stuck < kTries;
}

// The entry of TARGET, which is as it was before us where there is none yet.
BaselineEntry& Tuner::entry_for(const Workqueue& target) {
    if (edges_.store.find(target.name) == nullptr) edges_.store.put(entry_of(target));
    return *edges_.store.find(target.name);
}

void Tuner::announce(const Target& target, const Wish& wish) {
    // A strictness that is there already is not claimed: somebody else may have written it.
    entry_for(target.now).announce(*wish.word, wish.strict != target.now.strict ? wish.strict : std::nullopt);
}

void Tuner::carry_out(Target& target, const Wish& wish) {
    if (is_so(target, wish)) {
        if (BaselineEntry* entry = edges_.store.find(target.now.name); is_on_trial(entry))
            entry->order.clear();
        return;
    }
    const std::string old = target.now.scope.word;
    const BaselineEntry seen = as_seen(*edges_.store.find(target.now.name), target, *wish.word);
    const std::int64_t began = clock_ns(CLOCK_MONOTONIC);
    Outcome outcome = apply(edges_.files, seen, *wish.word, wish.strict);
    const auto took = static_cast<std::uint64_t>(clock_ns(CLOCK_MONOTONIC) - began) / 1000;
    write_time_ += took;
    using Kind = Outcome::Kind;
    if (outcome.kind == Kind::done) note_others(target, wish, outcome);
    if (outcome.kind != Kind::done) {
        take_failure(target, outcome);
        return settle_failure(target, *wish.word, outcome);
    }
    target.failures = 0;
    target.last_word = *wish.word;
    target.now.scope = {*wish.word,
                        *wish.word == "default" ? target.now.scope.effective : scope_named(*wish.word)};
    if (wish.strict) target.now.strict = target.last_strict = wish.strict;
    BaselineEntry& entry = *edges_.store.find(target.now.name);
    entry.settle(*wish.word, wish.strict);
    if (is_on_trial(&entry)) entry.order.clear();
    log(target.held == *wish.word ? LOG_DEBUG : LOG_INFO, Event::applied, target,
        fmt::format("'{}' -> '{}': {}", old, *wish.word, target.reason),
        {{"WQ_SCOPE_OLD", old}, {"WQ_SCOPE_NEW", *wish.word}, {"WQ_WRITE_USEC", std::to_string(took)}});
}

// What is as wished, was not so when we last looked, and was not written by us, an external writer wrote
// since.
void Tuner::note_others(const Target& target, const Wish& wish, Outcome& outcome) {
    if (target.last_word.empty() || target.now.scope.word.empty()) return;  // the last look failed
    const bool word = target.now.scope.word != wish.word && !outcome.wrote_word;
    const bool strict = wish.strict && target.now.strict != wish.strict && !outcome.wrote_strict;
    if (!word && !strict) return;
    if (strict) edges_.store.find(target.now.name)->disown(true);
    outcome.kind = Outcome::Kind::foreign;
    outcome.of_strict = !word;
    outcome.text = word ? *wish.word : *wish.strict ? "strict" : "not strict";
}

// The entry of TARGET after an OUTCOME that was not `done`: its files may hold our word, the baseline or a
// misparse, and what an external writer wrote.
void Tuner::take_failure(Target& target, const Outcome& outcome) {
    BaselineEntry& entry = *edges_.store.find(target.now.name);
    if (!outcome.stored.empty()) entry.allow(outcome.stored);
    if (outcome.kind == Outcome::Kind::foreign) entry.disown(outcome.of_strict);
    look_again(target);
}

void Tuner::look_again(Target& target) {
    const Look seen = look_at(edges_.files, *edges_.store.find(target.now.name));
    target.last_word = seen.scope ? seen.scope->word : "";
    target.last_strict = seen.strict;
    if (seen.scope) target.now.scope = *seen.scope;
    if (seen.strict) target.now.strict = seen.strict;
}

void Tuner::settle_failure(Target& target, const std::string& word, const Outcome& outcome) {
    using Kind = Outcome::Kind;
    if (failed(outcome)) write_errors_++;
    switch (outcome.kind) {
        case Kind::done:
            return;
        case Kind::gone:
            edges_.store.remove(target.now.name);
            target.gone = true;
            return;
        case Kind::foreign:
            return set_external(target, outcome.text);
        case Kind::unsupported:
            if (word != outcome.text && !outcome.text.empty() && word.starts_with(outcome.text))
                names_cut_short_ = true;
            return refuse(
                target, State::unsupported, word,
                fmt::format("the kernel stored '{}' for '{}'; baseline put back", outcome.text, word), 0);
        case Kind::transient:
            if (++target.failures < kTries) {
                target.state = State::waiting;
                target.reason = fmt::format("try {} of {}: {}", target.failures, kTries, outcome.text);
                return;
            }
            [[fallthrough]];
        case Kind::permanent:
            return refuse(target, State::quarantined, word, outcome.text, outcome.code);
    }
}

// Said once, not tried again until a reload.
void Tuner::refuse(Target& target, State as, const std::string& word, const std::string& reason, int code) {
    target.refused = std::make_unique<Refusal>(Refusal{word, as, reason});
    target.state = as;
    target.reason = reason;
    target.failures = 0;
    log(LOG_WARNING, as == State::unsupported ? Event::unsupported : Event::quarantined, target, reason,
        {{"WQ_SCOPE_NEW", word}, {"ERRNO", std::to_string(code)}});
    put_back(target);
}

// Back to the baseline, where we have a hand in the target at all. The entry goes once that is true.
void Tuner::put_back(Target& target) {
    BaselineEntry* entry = edges_.store.find(target.now.name);
    if (entry == nullptr) return;
    if (target.stuck >= kTries) return show_stuck(target);
    const Outcome outcome = restore(edges_.files, as_seen(*entry, target, entry->scope));
    if (failed(outcome)) {
        look_again(target);
        write_errors_++;
        target.stuck++;
        target.stuck_why = fmt::format("not put back to '{}': {}", entry->scope, outcome.text);
        show_stuck(target);
        return say_once(LOG_ERR, Event::quarantined, fmt::format("{}: {}", entry->name, target.reason),
                        {{"WQ_NAME", entry->name}, {"ERRNO", std::to_string(outcome.code)}});
    }
    target.stuck = 0;
    if (outcome.kind == Outcome::Kind::foreign) {
        take_failure(target, outcome);
        return set_external(target, outcome.text);
    }
    if (outcome.kind == Outcome::Kind::gone) target.gone = true;
    if (outcome.wrote) {
        log(target.held == entry->scope ? LOG_DEBUG : LOG_INFO, Event::restored, target,
            fmt::format("back to '{}'", entry->scope),
            {{"WQ_SCOPE_OLD", target.now.scope.word}, {"WQ_SCOPE_NEW", entry->scope}});
        if (entry->strict) target.now.strict = entry->strict;
        target.now.scope = plan_scope_of(target, entry->scope);
        target.last_word = entry->scope;
        target.last_strict = target.now.strict;
    }
    entry->release();
    if (is_on_trial(entry)) entry->order.clear();
    if (entry->order.empty()) edges_.store.remove(target.now.name);
}

// A baseline that the kernel refuses to take is tried again at exit and after a reload, not at every tick.
void Tuner::show_stuck(Target& target) {
    target.state = State::quarantined;
    target.reason = target.stuck_why;
}

ScopeFile Tuner::plan_scope_of(const Target& target, const std::string& word) const {
    return {word, word == "default" ? target.before : scope_named(word)};
}

}  // namespace wq
