// SPDX-License-Identifier: LGPL-2.1-or-later
// What a slot asks of the tuner: its writes, with all that every other write has around it.
#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "engine/engine.h"
#include "plan/pods.h"

namespace wq {
namespace {

constexpr std::size_t kLongest = 100;  // bytes of a list in a key, before a hash takes its place

// What a verdict was made by, as far as it makes it another one.
std::string text_of(const Judging& j, const std::vector<ComparedCounter>& compared) {
    std::string counters;
    for (const ComparedCounter& c : compared)
        if (!c.guard)
            counters +=
                fmt::format("{}{}{}", counters.empty() ? "" : ",", c.name, c.higher_is_better ? "+" : "");
    return fmt::format("alpha {} tolerance {} window {}ms washout {}ms pairs {} items {} {}",
                       j.settings.alpha, j.settings.tolerance, j.window.count(), j.washout.count(),
                       j.settings.max_pairs, j.settings.min_items, counters);
}

// Counters and guards with their tolerances, and what could not be counted.
std::string text_of(const Measures& measures) {
    std::string out;
    for (const ComparedCounter& c : measures.counters)
        out += fmt::format("{}{}{}{} {}", out.empty() ? "" : ", ", c.guard ? "guard " : "", c.name,
                           c.higher_is_better ? "+" : "", c.tolerance);
    return measures.lacks.empty() ? out : out + "; " + measures.lacks;
}

// CPUs of a key: the list, or, where that would be a page, a hash of it.
std::string text_of(const CpuSet& cpus) {
    std::string list = cpus.list();
    if (list.size() <= kLongest) return list;
    return fmt::format("{} CPUs {:016x}", cpus.count(), hash_of(list));
}

std::string text_of(const std::vector<CpuSet>& pods) {
    std::string list;
    for (const CpuSet& pod : pods) list += (list.empty() ? "" : "|") + pod.list();
    if (list.size() <= kLongest) return list;
    return fmt::format("{} pods {:016x}", pods.size(), hash_of(list));
}

// "6.12" of "6.12.107-generic", with the scopes that there are: a distribution may have taken one over.
std::string text_of(const KernelInfo& kernel) {
    const auto dot = kernel.release.find('.');
    const auto end = kernel.release.find_first_not_of("0123456789", dot + 1);
    std::string out = dot == std::string::npos ? kernel.release : kernel.release.substr(0, end);
    for (const Scope scope : kernel.scopes) out += " " + std::string(name_of(scope));
    return out;
}

}  // namespace

// Pods are cut of the CPUs that the target's mask and the unbound one leave; the fingerprint says how.
VerdictKey Tuner::key_for(const Workqueue& target, const Arms& arms) const {
    return {kernel_.release,
            fingerprint_,
            class_of(target.name),
            arms.baseline.name(),
            arms.candidate.name(),
            text_of(policy_.judge, measures_.counters),
            text_of(target.effective & known_.topology().online)};
}

// As text. Many targets have the same CPUs, and keys are made at every look.
const std::string& Tuner::partition_of(const CpuSet& effective, Scope scope) const {
    std::string& out = partitions_[{scope, effective.list()}];
    if (out.empty()) {
        const unsigned size = effective_shard_size(kernel_, policy_);
        out = text_of(restrict_to(pods_in(kernel_, scope, known_.topology(), size), effective));
    }
    return out;
}

LedgerKey Tuner::ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const {
    const CpuSet effective = target.effective & known_.topology().online;
    return {text_of(kernel_),
            fingerprint_,
            measures_.scheduler,
            class_of(target.name),
            arms.baseline.name(),
            arms.candidate.name(),
            from_policy ? "policy" : "kernel",
            {partition_of(effective, arms.baseline.scope), partition_of(effective, arms.candidate.scope)},
            text_of(measures_),
            fmt::format("{}ms {}ms", policy_.judge.window.count(), policy_.judge.washout.count())};
}

std::optional<Tuner::Glance> Tuner::glance(const std::string& name) {
    const auto found = targets_.find(name);
    if (found == targets_.end()) return {};
    Workqueue& target = found->second.now;
    const auto now = edges_.files.read(name);
    if (!now || now->inode != target.inode || now->unread || now->effective.empty()) return {};
    target.effective = now->effective;
    return Glance{text_of(target.effective & known_.topology().online), now->scope.word,
                  now->scope.word != found->second.last_word};
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

// The entries on disk say `trial` before the first write.
std::vector<Status> Tuner::begin_trials(const std::vector<std::string>& names) {
    std::vector<Status> out;
    for (const std::string& name : names) {
        const auto known = targets_.find(name);
        const ino_t inode = known == targets_.end() ? 0 : known->second.now.inode;
        Status may = known == targets_.end() ? fail(name + ": no such target", ENOENT) : may_try(name);
        if (may && targets_.at(name).now.inode != inode)
            may = fail(name + ": is another workqueue by now", ENODEV);
        if (may) {
            Target& target = targets_.at(name);
            entry_for(target.now).order = kTrial;
            target.on_trial = true;
            target.held = target.now.scope.word;
        }
        out.push_back(std::move(may));
    }
    if (const auto saved = edges_.store.save(); !saved) {
        end_trials(names);
        for (Status& each : out)
            if (each) each = tl::unexpected(saved.error().in("its baseline cannot be saved"));
        return out;
    }
    for (std::size_t i = 0; i < names.size(); i++)
        if (out[i]) (void)wish_for(targets_.at(names[i]));  // shows it
    return out;
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

// `done` where TO may be written.
Outcome Tuner::may_switch(const Switch& to) {
    const auto found = targets_.find(to.name);
    if (found == targets_.end()) return {Outcome::Kind::gone, false, to.name + ": vanished", ENOENT};
    Target& target = found->second;
    if (edges_.store.find(to.name) == nullptr || !target.on_trial)
        return {Outcome::Kind::permanent, false, "not on trial", EINVAL};
    // A look noticed it: what is still ours of it goes back in end_trials().
    if (target.external) return {Outcome::Kind::foreign, false, target.external_text, 0};
    return found_foreign(target, to.arm);
}

// It was announced, and that is on disk. A window of @default begins with a change from the other arm, so
// that no third scope is needed for the kernel to see a change (wq_affn_dfl_set() ignores the value in
// place).
Outcome Tuner::write_arm(const Target& target, BaselineEntry& entry, const Arm& arm) {
    Outcome outcome;
    for (unsigned i = 0; i < kTries && (i == 0 || outcome.kind == Outcome::Kind::transient); i++) {
        if (outcome.kind == Outcome::Kind::transient) write_errors_++;  // the last one is settled later
        outcome = rewrite(edges_.files, entry, arm.word, arm.strict, "");
    }
    if (outcome.kind == Outcome::Kind::done)
        entry.settle(arm.word, arm.strict ? arm.strict : target.now.strict);
    return outcome;
}

void Tuner::end_switch(Target& target, const Arm& arm, const Outcome& outcome) {
    if (outcome.kind == Outcome::Kind::done) {
        target.last_word = arm.word;
        target.now.scope = {arm.word, arm.scope};
        if (arm.strict) target.now.strict = target.last_strict = arm.strict;
        return;
    }
    target.on_trial = false;
    if (target.external || edges_.store.find(target.now.name) == nullptr) return;
    take_failure(target, outcome);
    if (!target.external) settle_failure(target, arm.word, outcome);
}

// Between two windows the entries on disk have the words in place and no others.
std::vector<Switched> Tuner::switch_to(const std::vector<Switch>& switches,
                                       const std::function<std::uint64_t()>& clock) {
    std::vector<Switched> out(switches.size());
    for (std::size_t i = 0; i < switches.size(); i++) {
        out[i].outcome = may_switch(switches[i]);
        if (out[i].outcome.kind != Outcome::Kind::done) continue;
        edges_.store.find(switches[i].name)->announce(switches[i].arm.word, switches[i].arm.strict);
    }
    const auto saved = edges_.store.save();
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        Outcome& outcome = out[i].outcome;
        if (outcome.kind == Outcome::Kind::done && !saved)
            outcome = {Outcome::Kind::transient, false, saved.error().in("its baseline cannot be saved").text,
                       saved.error().code};
        const auto found = targets_.find(name);
        if (found == targets_.end()) continue;
        if (outcome.kind == Outcome::Kind::done) {
            const std::uint64_t began = clock();
            outcome = write_arm(found->second, *edges_.store.find(name), arm);
            out[i].took = clock() - began;
            write_time_ += out[i].took;
        }
        const bool was_on_trial = found->second.on_trial;
        if (was_on_trial) end_switch(found->second, arm, outcome);
    }
    if (const auto again = edges_.store.save(); !again) say_once(LOG_ERR, Event::none, again.error().text);
    return out;
}

Outcome Tuner::switch_to(const std::string& name, const Arm& arm) {
    return switch_to({{name, arm}}, [] { return std::uint64_t{0}; }).front().outcome;
}

void Tuner::end_trials(const std::vector<std::string>& names) {
    bool any = false;
    for (const std::string& name : names) {
        const auto found = targets_.find(name);
        if (found == targets_.end()) continue;
        any = true;
        Target& target = found->second;
        target.on_trial = false;
        if (target.external && holds_ours(target)) {  // nobody decided upon the half that is still ours
            edges_.store.find(name)->announce_baseline();
            (void)edges_.store.save();  // it goes back all the same
            (void)restore(edges_.files, *edges_.store.find(name));
            look_again(target);
        }
        make_step(target);
    }
    if (!any) return;
    apply_wishes();
    for (const std::string& name : names)
        if (const auto found = targets_.find(name); found != targets_.end()) found->second.held.clear();
}

}  // namespace wq
