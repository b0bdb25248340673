// SPDX-License-Identifier: LGPL-2.1-or-later
// What a trial asks of the tuner: its writes, with all that every other write has around it.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "tuner/tuner.h"

namespace wq {
namespace {

// What a trial is judged by, as far as it makes its verdict another one.
std::string text_of(const Judging& j, const std::vector<JudgedCounter>& judged) {
    std::string counters;
    for (const JudgedCounter& c : judged)
        counters += fmt::format("{}{}{}", counters.empty() ? "" : ",", c.name, c.higher_is_better ? "+" : "");
    return fmt::format("alpha {} tolerance {} window {}ms washout {}ms pairs {} items {} {}",
                       j.settings.alpha, j.settings.tolerance, j.window.count(), j.washout.count(),
                       j.settings.max_pairs, j.settings.min_items, counters);
}

// CPUs of a verdict's key: the list, or, where that would be a page, a hash of it.
std::string text_of(const CpuSet& cpus) {
    constexpr std::size_t kLongest = 100;
    std::string list = cpus.list();
    if (list.size() <= kLongest) return list;
    return fmt::format("{} CPUs {:016x}", cpus.count(), hash_of(list));
}

}  // namespace

// Pods are cut of the CPUs that the target's mask and the unbound one leave; the fingerprint says how.
VerdictKey Tuner::key_for(const Workqueue& target, const Arms& arms) const {
    return {kernel_.release,
            fingerprint_,
            class_of(target.name),
            arms.baseline.name(),
            arms.candidate.name(),
            text_of(policy_.judge, counters_),
            text_of(target.effective & known_.topology().online)};
}

std::string Tuner::look_at_cpus(const std::string& name) {
    const auto found = targets_.find(name);
    if (found == targets_.end()) return "";
    Workqueue& target = found->second.now;
    const auto now = edges_.files.read(name);
    if (!now || now->inode != target.inode || now->unread || now->effective.empty()) return "";
    target.effective = now->effective;
    return text_of(target.effective & known_.topology().online);
}

Status Tuner::may_try(const std::string& name) {
    const auto found = find_for_order(name);
    if (!found) return tl::unexpected(found.error());
    const BaselineEntry* entry = edges_.store.find(name);
    if (pinned_scope(entry)) return fail(name + ": pinned; unpin it first", EBUSY);
    if (is_reverted(entry)) return fail(name + ": reverted by an operator's order; unpin it first", EBUSY);
    if ((*found)->unread) return fail(name + ": cannot be read now", EAGAIN);
    if (!pods_unknown_.empty()) return fail("pods unknown: " + pods_unknown_, EPERM);
    if (!(*found)->now.scope.effective) return fail(name + ": its scope is not known here", EINVAL);
    return {};
}

// The module parameter ignores the value that it has; through a third one both arms cost the same two moves.
std::string Tuner::word_between(const Arms& arms) const {
    for (const Scope scope : kernel_.scopes)
        if (scope != arms.baseline.scope && scope != arms.candidate.scope) return std::string(name_of(scope));
    return arms.baseline.word;
}

Status Tuner::begin_trial(const std::string& name, const Arms& arms) {
    const auto known = targets_.find(name);
    if (known == targets_.end()) return fail(name + ": no such target", ENOENT);
    const ino_t inode = known->second.now.inode;
    if (auto may = may_try(name); !may) return may;
    Target& target = targets_.at(name);
    if (target.now.inode != inode) return fail(name + ": is another workqueue by now", ENODEV);
    if (target.now.kind == Kind::default_scope) default_via_ = word_between(arms);
    entry_for(target.now).order = kTrial;
    target.on_trial = true;
    if (const auto saved = edges_.store.save(); !saved) {
        end_trial(name);
        return tl::unexpected(saved.error().in("its baseline cannot be saved"));
    }
    (void)wish_for(target);  // shows it
    return {};
}

// What changed since our last write is somebody else's, an arm's own word and the baseline included.
Outcome Tuner::found_foreign(Target& target, const Arm& arm) {
    const Look seen = look_at(edges_.files, *edges_.store.find(target.now.name));
    if (!seen.scope) return {};  // the write says why
    target.now.scope = *seen.scope;
    if (seen.strict) target.now.strict = seen.strict;
    if (seen.found.word == Whose::foreign) return {Outcome::Kind::foreign, false, seen.scope->word, 0};
    if (arm.strict && seen.found.strict == Whose::foreign)
        return {Outcome::Kind::foreign, false, *seen.strict ? "strict" : "not strict", 0, "", true};
    return {};
}

// Between two windows the entry on disk has the word in place and no other.
Outcome Tuner::write_arm(const Target& target, BaselineEntry& entry, const Arm& arm) {
    const std::string via = target.now.kind == Kind::default_scope ? default_via_ : "";
    entry.announce(arm.word, arm.strict);
    if (!via.empty()) entry.announce(via);
    if (const auto saved = edges_.store.save(); !saved)
        return {Outcome::Kind::transient, false, saved.error().in("its baseline cannot be saved").text,
                saved.error().code};
    Outcome outcome;
    for (unsigned i = 0; i < kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++) {
        if (outcome.kind == Outcome::Kind::transient) write_errors_++;  // the last one is settled later
        outcome = rewrite(edges_.files, entry, arm.word, arm.strict, via);
    }
    if (outcome.kind != Outcome::Kind::done) return outcome;
    entry.settle(arm.word, arm.strict ? arm.strict : target.now.strict);
    if (const auto saved = edges_.store.save(); !saved) say_once(LOG_ERR, Event::none, saved.error().text);
    return outcome;
}

Outcome Tuner::switch_to(const std::string& name, const Arm& arm) {
    const auto found = targets_.find(name);
    if (found == targets_.end()) return {Outcome::Kind::gone, false, name + ": vanished", ENOENT};
    Target& target = found->second;
    BaselineEntry* entry = edges_.store.find(name);
    if (entry == nullptr || !target.on_trial)
        return {Outcome::Kind::permanent, false, "not on trial", EINVAL};
    if (target.external) {  // a look noticed it: what is still ours of it goes back in end_trial()
        target.on_trial = false;
        return {Outcome::Kind::foreign, false, target.external_text, 0};
    }
    Outcome outcome = found_foreign(target, arm);
    if (outcome.kind == Outcome::Kind::done) outcome = write_arm(target, *entry, arm);
    if (outcome.kind == Outcome::Kind::done) {
        target.last_word = arm.word;
        target.now.scope = {arm.word, arm.scope};
        if (arm.strict) target.now.strict = target.last_strict = arm.strict;
        return outcome;
    }
    target.on_trial = false;
    take_failure(target, outcome);
    if (!target.external) settle_failure(target, arm.word, outcome);
    return outcome;
}

void Tuner::end_trial(const std::string& name) {
    const auto found = targets_.find(name);
    if (found == targets_.end()) return;
    Target& target = found->second;
    target.on_trial = false;
    if (target.external && holds_ours(target)) {  // nobody decided upon the half that is still ours
        edges_.store.find(name)->announce_baseline();
        (void)edges_.store.save();  // it goes back all the same
        (void)restore(edges_.files, *edges_.store.find(name));
        look_again(target);
    }
    make_step(target);
    apply_wishes();
}

}  // namespace wq
