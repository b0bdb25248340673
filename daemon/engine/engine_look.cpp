// SPDX-License-Identifier: LGPL-2.1-or-later
// What there is, who else writes, and what the plan would be without us.
#include <fmt/format.h>
#include <syslog.h>

#include "engine/engine.h"
#include "kernel/udev.h"
#include "plan/pods.h"

namespace wq {
namespace {

bool is_planned(const Target& target) {
    return target.plan.finding == Finding::in_place || target.plan.finding == Finding::change;
}

std::string text_of_strict(const Target& target) {
    return target.now.strict == true ? "strict" : "not strict";
}

}  // namespace

void Tuner::refresh_topology() {
    if (!topology_stale_) return;
    topology_stale_ = false;
    topology_reads_++;
    const auto now = edges_.read_topology();
    std::string why;
    if (now) {
        strict_in_doubt_ = strict_in_doubt_ || !last_online_.contains(now->online);
        if (last_online_.empty()) strict_in_doubt_ = false;  // the first look
        last_online_ = now->online;
        known_.see(*now);
        fingerprint_ = machine_fingerprint(kernel_, known_.topology());
        partitions_.clear();
        why = why_pods_unknown(known_.topology(), known_.cpus(), kernel_);
        // Files read while a CPU comes or goes may disagree for a moment: a few more looks, at the next
        // ticks.
        doubts_ = now->warnings.empty() ? 0 : doubts_ + 1;
        topology_stale_ = doubts_ > 0 && doubts_ <= kTries;
    } else {
        topology_stale_ = true;  // the next tick tries again
        why = "no topology: " + now.error().text;
    }
    if (why != pods_unknown_ && !why.empty())
        edges_.log.write(
            {LOG_NOTICE, Event::pods_unknown, "pods unknown: " + why + "; no new settings until they are"});
    pods_unknown_ = why;
}

void Tuner::refresh_targets() {
    const auto names = edges_.files.names();
    if (!names) {
        say_once(LOG_ERR, Event::none, names.error().text);
        return;
    }
    std::set<std::string> seen(names->begin(), names->end());
    for (const auto& [name, entry] : edges_.store.entries()) seen.insert(name);
    for (const auto& [name, target] : targets_) seen.insert(name);
    const CpuSet unbound_mask = edges_.files.unbound_mask();
    for (const std::string& name : seen) refresh_target(name, unbound_mask);
}

void Tuner::refresh_target(const std::string& name, const CpuSet& unbound_mask) {
    const auto now = edges_.files.read(name, unbound_mask);
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    const auto known = targets_.find(name);
    if (known != targets_.end() && now && known->second.now.inode != now->inode) forget(name);
    if (!now) say_once(LOG_WARNING, Event::none, now.error().text);
    if (now && now->unread) say_once(LOG_WARNING, Event::none, fmt::format("{}: {}", name, now->untouchable));
    if (!now || now->unread || unbound_mask.empty()) {
        // Memory may be short for a moment. What is managed stays as it is until it can be read.
        if (const auto managed = targets_.find(name); managed != targets_.end())
            return keep_unread(managed->second, now ? &*now : nullptr);
        if (!now || edges_.store.find(name) != nullptr) return;
    }
    const BaselineEntry* entry = edges_.store.find(name);
    if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
    Target& target = targets_[name];
    target.now = *now;
    target.unread = false;
    if (target.ask_udev) ask_udev(target);
    if (target.now.untouchable.empty() && target.opted_out.value_or(true))
        target.now.untouchable = target.opted_out ? kOptedOutByUdev : kNotProcessedByUdev;
    notice_foreign(target, now->strict);
}

// What it once said holds until it says something else.
void Tuner::ask_udev(Target& target) {
    std::optional<bool> answer = false;
    if (target.now.kind != Kind::default_scope) answer = edges_.opted_out(target.now.name);
    if (answer) target.opted_out = answer;
    target.ask_udev = !answer;
}

// SEEN: what of it could be read, if any.
void Tuner::keep_unread(Target& target, const Workqueue* seen) {
    target.unread = true;
    if (seen == nullptr || seen->scope.word.empty()) return;
    target.now.scope = seen->scope;
    if (seen->strict) target.now.strict = seen->strict;
    notice_foreign(target, seen->strict);
}

void Tuner::forget(const std::string& name) {
    targets_.erase(name);
    edges_.store.remove(name);
}

// The word and the strictness of a target that we manage change by our writes alone, written to already or
// not. What else is found is somebody else's; one of our own words, too, if it is not the one that we left
// there. STRICT: as it was read this time.
void Tuner::notice_foreign(Target& target, std::optional<bool> strict) {
    const std::string& word = target.now.scope.word;
    if (word.empty()) return;  // not read: that is nobody's word
    if (BaselineEntry* entry = edges_.store.find(target.now.name); entry != nullptr) {
        const bool strict_counts = strict && minds(target, *strict);
        const bool known = entry->external && !target.external;  // since before the start
        const bool word_is_ours = entry->whose(word) == Whose::ours;
        const Found found = entry->settle(word, strict);
        const bool of_strict =
            found.word != Whose::foreign && strict_counts && found.strict == Whose::foreign;
        const std::string text = of_strict || (known && word_is_ours) ? text_of_strict(target) : word;
        if (known) {
            target.external = true;
            target.external_text = text;
        } else if (!target.external && (of_strict || found.word == Whose::foreign)) {
            set_external(target, text);
        }
    } else if (!target.external) {
        notice_change(target);
    }
    target.last_word = word;
    if (strict) target.last_strict = strict;
}

// Whether STRICT, where it is not what we know of, would be in our way.
bool Tuner::minds(const Target& target, bool strict) const {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    if (entry != nullptr && entry->may_strict) return true;
    return is_planned(target) && target.plan.strict && target.plan.strict != strict;
}

// Where we have not written yet: what was there before an external writer wrote is the baseline.
void Tuner::notice_change(Target& target) {
    if (!is_planned(target) || target.last_word.empty()) return;
    const bool word = target.now.scope.word != target.last_word;
    const bool strict = target.plan.strict && target.last_strict && target.now.strict &&
                        target.now.strict != target.last_strict;
    if (!word && !strict) return;
    Workqueue before = target.now;
    before.scope.word = target.last_word;
    before.strict = target.last_strict;
    entry_for(before);
    set_external(target, word ? target.now.scope.word : text_of_strict(target));
}

// Lasting: no restore and no restart takes TEXT, a word or a strictness, for ours again, even if it once was.
// The other one, where it is ours, still goes back in the end.
void Tuner::set_external(Target& target, const std::string& text) {
    BaselineEntry& entry = *edges_.store.find(target.now.name);
    entry.external = true;
    if (is_on_trial(&entry)) entry.order.clear();
    target.external = true;
    target.external_text = text;
    log(LOG_NOTICE, Event::external, target,
        fmt::format("holds '{}', which an external writer wrote; it is left as it is until a reload", text),
        {{"WQ_SCOPE_NEW", target.now.scope.word}});
    (void)wish_for(target);  // shows it
}

bool Tuner::holds_ours(const Target& target) const {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    return entry != nullptr && entry->whose(target.now.scope.word, target.now.strict).is_ours();
}

Workqueue Tuner::as_before_us(const Target& target) const {
    Workqueue out = target.now;
    const BaselineEntry* entry = edges_.store.find(out.name);
    if (entry != nullptr && !target.external) {
        out.scope = {entry->scope, scope_named(entry->scope)};
        if (entry->may_strict) out.strict = entry->strict;
    }
    return out;
}

// @default where it moves nobody: somebody else's, or held by an order. Its followers have what it says now.
bool Tuner::default_is_held(const Target& target) const {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    return target.external || pinned_scope(entry) || is_reverted(entry);
}

std::vector<Workqueue> Tuner::targets_before_us() const {
    std::vector<Workqueue> out;
    std::optional<Scope> default_scope;
    for (const auto& [name, target] : targets_) {
        Workqueue& w = out.emplace_back(as_before_us(target));
        if (w.kind != Kind::default_scope) continue;
        default_scope = w.scope.effective;
        if (!default_is_held(target)) continue;
        if (!is_reverted(edges_.store.find(name))) default_scope = target.now.scope.effective;
        w.untouchable = target.external ? "external" : "held by an operator's order";
    }
    for (Workqueue& w : out)
        if (w.kind == Kind::unbound && w.scope.word == "default" && default_scope)
            w.scope.effective = default_scope;
    return out;
}

void Tuner::plan_targets() {
    auto before = targets_before_us();
    const PlanInput input{
        known_.topology(), kernel_, policy_, before, pods_unknown_, effective_shard_size(kernel_, policy_)};
    plan_each(input, [&](std::size_t, PlanLine line) { take(std::move(line)); });
    // Where @default stays at its baseline (it is not compared yet, and it comes last; it regressed; the
    // kernel refuses its plan), it moves no follower: they are planned again, for themselves. So, too, where
    // another scope than the planned one was kept.
    const auto parameter = targets_.find(kDefaultTarget);
    if (parameter == targets_.end()) return;
    const Target& moving = parameter->second;
    std::optional<Scope> holds;
    if (moving.step.kind == Step::Kind::kept && !moving.refuses(moving.step.hold->word))
        holds = moving.step.hold->scope;
    if (!has_no_effect(moving) && (!holds || holds == moving.plan.planned)) return;
    for (Workqueue& w : before)
        if (w.kind == Kind::default_scope && !holds) w.untouchable = "stays at its baseline";
    PlanInput again = input;
    again.default_holds = holds;
    plan_each(again, [&](std::size_t, PlanLine line) {
        if (line.target.kind != Kind::default_scope) take(std::move(line));
    });
}

// What only the search of mode tune asks for is not kept without it: there may be thousands of targets.
void Tuner::take(PlanLine line) {
    Target& target = targets_.at(line.target.name);
    target.before = line.target.scope.effective;
    if (!searches(line.target, policy_)) line.candidates = std::vector<Candidate>();
    static_cast<Planned&>(target.plan) = std::move(line);
    make_step(target);
}

bool Tuner::has_no_effect(const Target& target) const {
    if (target.step.kind == Step::Kind::kept) return target.refuses(target.step.hold->word);
    return is_refused(target) || target.step.kind == Step::Kind::reverted ||
           (target.plan.finding == Finding::change && !policy_.apply_unjudged);
}

// What past verdicts say of a target that a trial could be about.
void Tuner::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = as_before_us(target);
    if (before.scope.word == "default") before.scope.effective = target.before;
    const bool open = plan.finding == Finding::in_place && searches(before, policy_);
    if (plan.finding != Finding::change && !open) return;
    if (!edges_.next_step) return;
    target.step = edges_.next_step(
        {before, plan, policy_, effective_shard_size(kernel_, policy_),
         [&](const Arms& arms, bool from_policy) { return ledger_key(target.now, arms, from_policy); },
         [&](const Arms& arms) { return edges_.verdicts.latest(key_for(target.now, arms)); }, edges_.now()});
}

void Tuner::step_all() {
    plan_targets();  // what @default holds is part of its followers' plans
    apply_wishes();
}

bool Tuner::is_refused(const Target& target) {
    return target.plan.finding == Finding::change && target.plan.planned && target.refused &&
           name_of(*target.plan.planned) == target.refused->word;
}

}  // namespace wq
