// SPDX-License-Identifier: LGPL-2.1-or-later
// Carries out wishes: writes to the files, and handles the outcome of each write.
#include "targets/applier.h"

#include <fmt/format.h>
#include <syslog.h>

#include "base/clock.h"

namespace wq {
namespace {

// The baseline of what an external writer set to TEXT, a word or a strictness; "" if it is TEXT as well.
std::string baseline_of(const BaselineEntry& entry, const std::string& text) {
    const bool of_strict = text == "strict" || text == "not strict";
    std::string out = !of_strict ? entry.scope : entry.strict == true ? "strict" : "not strict";
    return out == text ? "" : out;
}

}  // namespace

void Applier::announce(Target& target, const Wish& wish, bool goes_back) {
    if (wish.wants()) target.stuck = 0;  // the baseline is not to be put back any more
    if (wish.sets(target)) {
        // Does not claim a strictness that is in place already: an external writer may have written it.
        const bool strict_changes = wish.strict != target.now.strict;
        ownership_.entry_for(target.now).announce(*wish.word, strict_changes ? wish.strict : std::nullopt);
        return;
    }
    target.failures = 0;  // nothing is left to retry
    if (BaselineEntry* entry = ownership_.entry(target.now.name); entry != nullptr && goes_back)
        entry->announce_baseline();
}

void Applier::carry_out(Target& target, const Wish& wish) {
    const std::string& name = target.now.name;
    if (!wish.sets(target)) {
        if (BaselineEntry* entry = ownership_.entry(name); entry != nullptr) entry->end_slot();
        return;
    }
    std::uint64_t took = 0;
    Outcome outcome =
        timed(took, [&] { return writer_.apply(name, *wish.word, wish.strict, target.seen()); });
    write_time_ += took;
    if (outcome.kind == Outcome::Kind::done) note_others(target, wish, outcome);
    if (outcome.kind == Outcome::Kind::done) return wrote(target, wish, took);
    take_failure(target, *wish.word, outcome);
}

void Applier::wrote(Target& target, const Wish& wish, std::uint64_t took) {
    const std::string& word = *wish.word;
    const std::string old = target.now.scope.word;
    const bool strict_only = old == word && wish.strict && target.now.strict;
    const std::string change =
        strict_only ? fmt::format("affinity_strict {:d} -> {:d}", *target.now.strict, *wish.strict)
                    : fmt::format("'{}' -> '{}'", old, word);
    target.failures = 0;
    target.last_word = word;
    target.now.scope = {word, word == "default" ? target.now.scope.effective : scope_named(word)};
    if (wish.strict) target.now.strict = target.last_strict = wish.strict;
    BaselineEntry& entry = *ownership_.entry(target.now.name);
    entry.settle(word, wish.strict);
    entry.end_slot();
    log_.write(target.held == word ? LOG_DEBUG : LOG_INFO, Event::applied, target,
               fmt::format("{}: {}", change, target.reason),
               {{"WQ_SCOPE_OLD", old}, {"WQ_SCOPE_NEW", word}, {"WQ_WRITE_USEC", std::to_string(took)}});
}

// If the files hold what we wanted to write, but did not hold it at the last look, and we did not write it,
// then an external writer did.
void Applier::note_others(const Target& target, const Wish& wish, Outcome& outcome) {
    if (target.seen().word.empty()) return;  // the last look failed
    const bool word = target.now.scope.word != wish.word && !outcome.wrote_word;
    const bool strict = wish.strict && target.now.strict != wish.strict && !outcome.wrote_strict;
    if (!word && !strict) return;
    if (strict) ownership_.entry(target.now.name)->disown(true);
    outcome.kind = Outcome::Kind::foreign;
    outcome.of_strict = !word;
    outcome.text = word ? *wish.word : *wish.strict ? "strict" : "not strict";
}

// After an OUTCOME that was not `done` the files of TARGET may hold our word, the baseline, a misparse, or
// what an external writer wrote.
void Applier::settle_entry(Target& target, const Outcome& outcome) {
    BaselineEntry& entry = *ownership_.entry(target.now.name);
    if (!outcome.stored.empty()) entry.allow(outcome.stored);
    if (outcome.kind == Outcome::Kind::foreign) entry.disown(outcome.of_strict);
    look_again(target);
}

void Applier::look_again(Target& target) {
    const Look seen = look_at(files_, *ownership_.entry(target.now.name));
    target.last_word = seen.scope ? seen.scope->word : "";
    target.last_strict = seen.strict;
    if (seen.scope) target.now.scope = *seen.scope;
    if (seen.strict) target.now.strict = seen.strict;
}

void Applier::take_failure(Target& target, const std::string& word, const Outcome& outcome) {
    using Kind = Outcome::Kind;
    settle_entry(target, outcome);
    if (outcome.failed()) write_errors_++;
    switch (outcome.kind) {
        case Kind::done:
            return;
        case Kind::gone:
            ownership_.forget(target.now.name);
            target.gone = true;
            return;
        case Kind::foreign:
            return leave_to_writer(target, outcome.text);
        case Kind::unsupported:
            if (word != outcome.text && !outcome.text.empty() && word.starts_with(outcome.text))
                names_cut_short_ = true;
            return refuse(
                target, State::unsupported, word,
                fmt::format("the kernel stored '{}' for '{}'; baseline put back", outcome.text, word), 0);
        case Kind::transient:
            if (++target.failures < Target::kTries)
                return target.show({State::waiting, fmt::format("try {} of {}: {}", target.failures,
                                                                Target::kTries, outcome.text)});
            [[fallthrough]];
        case Kind::permanent:
            return refuse(target, State::quarantined, word, outcome.text, outcome.code);
    }
}

// Logged once, because WORD is not tried again until a reload.
void Applier::refuse(Target& target, State as, const std::string& word, const std::string& reason, int code) {
    if (!target.refuses(word)) target.refused.push_back({word, as, reason});
    target.show({as, reason});
    target.failures = 0;
    log_.write(LOG_WARNING, as == State::unsupported ? Event::unsupported : Event::quarantined, target,
               reason, {{"WQ_SCOPE_NEW", word}, {"ERRNO", std::to_string(code)}});
    put_back(target);
}

void Applier::leave_to_writer(Target& target, const std::string& text) {
    ownership_.leave_to_writer(target, text);
    const std::string baseline = baseline_of(*ownership_.entry(target.now.name), text);
    const std::string back =
        baseline.empty() ? "" : fmt::format("'{}' (the baseline) is back and ", baseline);
    log_.write(LOG_NOTICE, Event::external, target,
               fmt::format("holds '{}', which an external writer wrote; it is left alone until {}the policy "
                           "is reloaded",
                           text, back),
               {{"WQ_SCOPE_NEW", target.now.scope.word}});
    target.show(left_to_writer(target));
}

void Applier::put_back(Target& target) {
    BaselineEntry* entry = ownership_.entry(target.now.name);
    if (entry == nullptr) return;
    if (target.is_stuck()) return target.show({State::quarantined, target.stuck_why});
    std::uint64_t took = 0;
    const Outcome outcome = timed(took, [&] { return writer_.put_back(target.now.name, target.seen()); });
    write_time_ += took;
    if (outcome.failed()) return not_put_back(target, outcome);
    target.stuck = 0;
    if (outcome.kind == Outcome::Kind::foreign) {
        settle_entry(target, outcome);
        return leave_to_writer(target, outcome.text);
    }
    if (outcome.kind == Outcome::Kind::gone) target.gone = true;
    if (outcome.wrote) {
        log_.write(target.held == entry->scope ? LOG_DEBUG : LOG_INFO, Event::restored, target,
                   fmt::format("back to '{}'", entry->scope),
                   {{"WQ_SCOPE_OLD", target.now.scope.word},
                    {"WQ_SCOPE_NEW", entry->scope},
                    {"WQ_WRITE_USEC", std::to_string(took)}});
        if (entry->strict) target.now.strict = entry->strict;
        target.now.scope = {entry->scope,
                            entry->scope == "default" ? target.before : scope_named(entry->scope)};
        target.last_word = entry->scope;
        target.last_strict = target.now.strict;
    }
    entry->release();
    entry->end_slot();
    if (entry->holder == Holder::policy) ownership_.forget(target.now.name);
}

// After kTries failures a baseline is tried again only at exit and after a reload, not at every tick.
void Applier::not_put_back(Target& target, const Outcome& outcome) {
    look_again(target);
    write_errors_++;
    target.stuck++;
    target.stuck_why =
        fmt::format("not put back to '{}': {}", ownership_.entry(target.now.name)->scope, outcome.text);
    target.show({State::quarantined, target.stuck_why});
    log_.write_once(LOG_ERR, Event::quarantined, fmt::format("{}: {}", target.now.name, target.reason),
                    {{"WQ_NAME", target.now.name}, {"ERRNO", std::to_string(outcome.code)}});
}

void Applier::put_half_back(Target& target) {
    const Outcome outcome = writer_.put_back(target.now.name);
    if (outcome.failed()) {
        write_errors_++;
        log_.write_once(LOG_ERR, Event::quarantined,
                        fmt::format("{}: not put back: {}", target.now.name, outcome.text),
                        {{"WQ_NAME", target.now.name}, {"ERRNO", std::to_string(outcome.code)}});
    }
    look_again(target);
}

// Writes no third scope in between. Each window of @default begins with a change from the other arm, so
// wq_affn_dfl_set(), which ignores a write of the current value, always sees a change.
Outcome Applier::rewrite(const Target& target, const Arm& arm, const std::function<std::uint64_t()>& clock,
                         std::uint64_t& took) {
    const std::uint64_t began = clock();
    Outcome outcome;
    for (unsigned i = 0; i < Target::kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++) {
        if (outcome.kind == Outcome::Kind::transient) write_errors_++;  // take_failure() counts the last one
        outcome = writer_.rewrite(target.now.name, arm.word, arm.strict);
    }
    if (outcome.kind == Outcome::Kind::done)
        ownership_.entry(target.now.name)->settle(arm.word, arm.strict ? arm.strict : target.now.strict);
    took = clock() - began;
    write_time_ += took;
    return outcome;
}

}  // namespace wq
