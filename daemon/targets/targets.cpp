// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/targets.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "machine/kernel_info.h"

namespace wq {
namespace {

// Sets TARGET to what was read NOW. An answer of udev is valid until udev gives another one.
void fill(Target& target, Workqueue now,
          const std::function<std::optional<bool>(const std::string&)>& opted_out) {
    target.now = std::move(now);
    target.unread = false;
    if (target.ask_udev) {
        std::optional<bool> answer = false;
        if (target.now.kind != Kind::default_scope) answer = opted_out(target.now.name);
        if (answer) target.opted_out = answer;
        target.ask_udev = !answer;
    }
    if (target.opted_out.value_or(target.now.untouchable.empty()))
        target.now.untouchable = target.opted_out ? kOptedOutByUdev : kNotProcessedByUdev;
}

// All TARGETS with the values of their baselines.
std::vector<Workqueue> all_before_us(const std::map<std::string, Target>& targets) {
    std::vector<Workqueue> out;
    std::optional<Scope> default_scope;
    for (const auto& [name, target] : targets) {
        Workqueue& w = out.emplace_back(target.before_us());
        if (w.kind != Kind::default_scope) continue;
        default_scope = w.scope.effective;
        // If @default is left to an external writer or held by an order, our plan does not move its
        // followers: they have the scope that it holds now.
        const Holder holder = target.holder();
        if (holder != Holder::external && !is_order(holder)) continue;
        if (holder != Holder::revert) default_scope = target.now.scope.effective;
        w.untouchable =
            (holder == Holder::external ? left_to_writer(target) : held_by_order(*target.entry())).reason;
    }
    for (Workqueue& w : out)
        if (w.kind == Kind::unbound && w.scope.word == "default" && default_scope)
            w.scope.effective = default_scope;
    return out;
}

}  // namespace

Targets::Targets(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      inventory_(edges_.log, edges_.read_topology, kernel_),
      log_(edges_.log),
      reconciler_(edges_.files, edges_.store, log_),
      keys_(inventory_, policy_) {}

std::string Targets::observing() const {
    return why_observing(kernel_, policy_, observe_why_);
}

bool Targets::wants_retry() const {
    return std::ranges::any_of(targets_, [](const auto& item) { return item.second.wants_retry(); });
}

std::string Targets::summary() const {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets_) counts[name_of(target.state)]++;
    std::string out = observing().empty() ? std::string(name_of(policy_.mode)) : "observing: " + observing();
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

std::string Targets::why_default_stays() const {
    return default_stays_.empty() ? ""
                                  : default_stays_ + "; a scope or `plan` in [default_scope] moves them too";
}

std::string Targets::note() const {
    const std::string why = policy_.default_scope.manage ? why_default_stays() : "";
    return why.empty() ? "" : fmt::format("{}: not moved meanwhile: {}", kDefaultTarget, why);
}

Status Targets::may(const Target& target, Use use) const {
    const auto no = [&](int code, const std::string& why) {
        return fail(target.now.name + ": " + why, code);
    };
    if (!target.now.untouchable.empty()) return no(EPERM, target.now.untouchable);
    if (target.external)
        return no(EPERM, fmt::format("external: holds '{}', which an external writer wrote; put the baseline "
                                     "back and reload the policy",
                                     target.now.scope.word));
    if (const std::string why = observing(); !why.empty())
        return no(EPERM, "nothing is written while observing: " + why);
    if (use == Use::revert) return {};
    if (target.now.name == kDefaultTarget && !default_stays_.empty()) return no(EPERM, why_default_stays());
    if (const std::string& why = inventory_.pods_unknown(); !why.empty())
        return fail("pods unknown: " + why, EPERM);
    if (use == Use::pin) return {};
    const Holder holder = target.holder();
    if (holder == Holder::pin) return no(EBUSY, "pinned; unpin it first");
    if (holder == Holder::revert)
        return no(EBUSY, target.entry()->must_stay() ? target.entry()->note
                                                     : "reverted by an operator's order; unpin it first");
    if (target.unread) return no(EAGAIN, "cannot be read now");
    if (!target.now.scope.effective) return no(EINVAL, "wq-tuned does not know its current scope");
    return {};
}

// ---- looking

void Targets::look_and_plan() {
    if (inventory_.look_at_topology()) keys_.forget_pods();
    if (const auto names = edges_.files.names()) {
        std::set<std::string> seen(names->begin(), names->end());
        for (const auto& [name, entry] : edges_.store.entries()) seen.insert(name);
        for (const auto& [name, target] : targets_) seen.insert(name);
        const CpuSet unbound_mask = edges_.files.unbound_mask();
        for (const std::string& name : seen) look_at(name, unbound_mask);
    } else {
        log_.write_once(LOG_ERR, Event::none, names.error().text);
    }
    plan();
}

void Targets::look_at(const std::string& name, const CpuSet& unbound_mask) {
    const auto now = edges_.files.read(name, unbound_mask);
    const auto forget = [this](const std::string& one) {
        targets_.erase(one);
        edges_.store.remove(one);
    };
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    if (const auto known = targets_.find(name);
        known != targets_.end() && now && known->second.now.inode != now->inode)
        forget(name);
    if (!now) log_.write_once(LOG_WARNING, Event::none, now.error().text);
    if (now && now->unread)
        log_.write_once(LOG_WARNING, Event::none, fmt::format("{}: {}", name, now->untouchable));
    const Owned* entry = edges_.store.find(name);
    const auto known = targets_.find(name);
    const bool unread = !now || now->unread || unbound_mask.empty();
    // The read may fail only because memory is short for a moment. A managed target stays as it is until it
    // can be read.
    if (unread && known == targets_.end() && (!now || entry != nullptr)) return;
    if (unread && known != targets_.end()) {
        Target& target = known->second;
        target.unread = true;
        if (!now || now->scope.word.empty()) return;
        target.now.scope = now->scope;
        if (now->strict) target.now.strict = now->strict;
    } else {
        if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
        Target& target = targets_[name];
        target.store = &edges_.store;
        fill(target, *now, edges_.opted_out);
    }
    Target& target = targets_.at(name);
    if (const auto news = target.notice(now->strict)) reconciler_.leave_to_writer(target, *news);
}

// ---- planning

// The followers of @default are planned with the scope to which plan and ledger move it. Only targets whose
// rule says `auto` keep their candidates, to save memory: there may be thousands of targets.
void Targets::plan() {
    const auto before = all_before_us(targets_);
    PlanInput input{inventory_.topology(),
                    kernel_,
                    policy_,
                    before,
                    inventory_.pods_unknown(),
                    effective_shard_size(kernel_, policy_),
                    named_only_};
    for (const auto& [name, target] : targets_) {
        if (target.holder() == Holder::revert) input.reverted.insert(name);
        if (name == kDefaultTarget) input.default_moved = target.in_slot || target.holds_ours();
    }
    input.default_holds = [&](const PlanLine& line) -> std::optional<Scope> {
        const Target& target = targets_.at(line.target.name);
        const auto& hold = target.step.hold;
        const bool moves = hold && target.step.holds(*hold) && target.refusal_of(hold->word) == nullptr;
        return moves ? std::optional(hold->scope) : std::nullopt;
    };
    plan_each(input, [&](std::size_t, PlanLine line) {
        Target& target = targets_.at(line.target.name);
        target.before = line.target.scope.effective;
        if (!searches(line.target, policy_) || line.finding == Finding::leave)
            line.candidates = std::vector<Candidate>();
        static_cast<Planned&>(target.plan) = std::move(line);
        make_step(target);
    });
    const bool is_set = policy_.default_scope.manage && policy_.default_scope.wish.sets_first();
    const std::string left = is_set ? std::string() : followers_to_leave(input);
    default_stays_ = left.empty() ? "" : "followers must stay at the kernel's scope: " + left;
    if (!left.empty() && input.default_moved) leave_followers();
}

// A workqueue that must be left began to follow @default while that was moved, by us or by a pin. It stays at
// its baseline until a reload or a boot: otherwise each mount could move it back and forth.
void Targets::leave_followers() {
    Owned& entry = targets_.at(kDefaultTarget).make_entry();
    if (entry.holder == Holder::revert) return;
    entry.hold(Holder::revert, default_stays_ + "; not set again before a reload or a boot");
    log_.write(LOG_NOTICE, Event::restored, kDefaultTarget,
               default_stays_ + "; it is put back until a reload", {});
}

// Asks the ledger for the step, if there can be a comparison.
void Targets::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = target.before_us();
    if (before.scope.word == "default") before.scope.effective = target.before;
    // A follower is in place where @default was moved to what its rule wants.
    const bool open =
        plan.finding == Finding::in_place && (searches(before, policy_) || plan.now != target.before);
    if ((plan.finding != Finding::change && !open) || !edges_.next_step) return;
    target.step = edges_.next_step(
        {before, plan, policy_, effective_shard_size(kernel_, policy_),
         [&](const Arms& arms, bool from_policy) { return keys_.ledger_key(target.now, arms, from_policy); },
         [&](const LedgerKey& key) { return edges_.verdicts.latest(key); },
         [&](const std::string& word) { return target.refusal_of(word) != nullptr; }, edges_.now()});
}

// ---- deciding

Circumstances Targets::circumstances() const {
    return {observing(), inventory_.pods_unknown(), edges_.waiting ? edges_.waiting() : Waiting()};
}

Wish Targets::decide_on(const Target& target, const Circumstances& all) {
    Wish out = decide(target, all);
    if (!out.lacks_scope) return out;
    const WorkqueueRule* rule = policy_.rule_for(target.now.name);
    const Origin* origin = target.now.kind == Kind::default_scope ? &policy_.default_scope.origin
                           : rule != nullptr                      ? &rule->origin
                                                                  : nullptr;
    if (origin != nullptr)
        log_.write_once(LOG_NOTICE, Event::unsupported,
                        fmt::format("{}: {}", origin->text(), target.plan.reason));
    return out;
}

}  // namespace wq
