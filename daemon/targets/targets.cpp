// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/targets.h"

#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>
#include <set>

namespace wq {
namespace {

// Sets TARGET to what was read NOW. An answer of udev is valid until udev gives another one.
void fill(Target& target, Workqueue now, const OptedOut& opted_out) {
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

// A workqueue that must be left began to follow @default, the PARAMETER, while that was moved, by us or by a
// pin. It stays at its baseline until a reload or a boot: otherwise each mount could move it back and forth.
void leave_followers(Target& parameter, const std::string& why, TargetLog& log) {
    Owned& entry = parameter.make_entry();
    if (entry.holder == Holder::revert) return;
    entry.hold(Holder::revert, why + "; not set again before a reload or a boot");
    log.write(LOG_NOTICE, Event::restored, kDefaultTarget, why + "; it is put back until a reload", {});
}

}  // namespace

Targets::Targets(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      snapshot_(edges_.log, edges_.read_topology, kernel_),
      log_(edges_.log),
      keys_(snapshot_, policy_) {}

std::string Targets::observing() const {
    return why_observing(kernel_, policy_, observe_why_);
}

void Targets::set_policy(Policy policy) {
    policy_ = std::move(policy);
    log_.start_over();
    for (auto& [name, target] : all_) target.start_over();
    if (all_.empty()) return;  // at the start, not at a reload
    edges_.store.start_over(Knob::scope);
    snapshot_.changed(Udev::Change::cpu);
}

void Targets::changed(Udev::Change change) {
    snapshot_.changed(change);
    if (change != Udev::Change::workqueue && change != Udev::Change::lost) return;
    for (auto& [name, target] : all_) target.ask_udev = true;
}

// ---- looking

void Targets::look() {
    if (snapshot_.look_at_topology()) keys_.forget_pods();
    if (const auto names = edges_.files.names()) {
        std::set<std::string> seen(names->begin(), names->end());
        for (const auto& [name, entry] : edges_.store.entries()) seen.insert(name);
        for (const auto& [name, target] : all_) seen.insert(name);
        unbound_mask_ = edges_.files.unbound_mask();
        complete_ = true;
        for (const std::string& name : seen) look_at(name, unbound_mask_);
    } else {
        complete_ = false;
        log_.write_once(LOG_ERR, Event::none, names.error().text);
    }
    plan();
}

void Targets::look_at(const std::string& name, const CpuSet& unbound_mask) {
    const auto now = edges_.files.read(name, unbound_mask);
    const auto forget = [this](const std::string& one) {
        all_.erase(one);
        edges_.store.remove(one);
    };
    if (!now && kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
    if (const auto known = all_.find(name);
        known != all_.end() && now && known->second.now.inode != now->inode)
        forget(name);
    if (!now) log_.write_once(LOG_WARNING, Event::none, now.error().text);
    if (now && now->unread)
        log_.write_once(LOG_WARNING, Event::none, fmt::format("{}: {}", name, now->untouchable));
    const Owned* entry = edges_.store.find(name);
    const auto known = all_.find(name);
    const bool unread = !now || now->unread || unbound_mask.empty();
    complete_ = complete_ && !unread;
    // Memory may be short for a moment. A managed target stays as it is until it can be read.
    if (unread) {
        if (known != all_.end()) known->second.unread = true;
        if (known != all_.end() || !now || entry != nullptr) return;
    }
    if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
    Target& target = all_[name];
    target.store = &edges_.store;
    fill(target, *now, edges_.opted_out);
    if (const auto news = target.notice(now->strict)) leave_to_writer(target, *news, log_);
}

bool Targets::is_as_seen() const {
    if (!complete_ || snapshot_.stale) return false;
    if (edges_.files.unbound_mask() != unbound_mask_) return false;
    return std::ranges::all_of(edges_.store.entries(), [this](const auto& item) {
        const auto& [name, entry] = item;
        const auto target = all_.find(name);
        if (target == all_.end() || target->second.tries_to_go_back()) return false;
        const auto scope = edges_.files.read_scope(name, entry.inode);
        if (!scope || scope->word != target->second.last.main) return false;
        if (!entry.strict) return true;
        const auto strict = edges_.files.read_strict(name, entry.inode);
        return strict && *strict == target->second.last.strict;
    });
}

// ---- planning

// The followers of @default are planned with the scope to which plan and ledger move it. Only targets whose
// rule says `auto` keep their candidates, to save memory: there may be thousands of targets.
void Targets::plan() {
    const auto before = all_before_us(all_);
    if (const Target* p = find(kDefaultTarget); p != nullptr)
        keys_.set_first_default(p->before_us().scope.effective);
    PlanInput input{snapshot_.topology(),
                    kernel_,
                    policy_,
                    before,
                    snapshot_.pods_unknown,
                    effective_shard_size(kernel_, policy_),
                    named_only_};
    for (const auto& [name, target] : all_) {
        if (target.holder() == Holder::revert) input.reverted.insert(name);
        if (name == kDefaultTarget) input.default_moved = target.in_slot || target.holds_ours();
    }
    input.default_holds = [&](const PlanLine& line) -> std::optional<Scope> {
        const Target& target = all_.at(line.target.name);
        const auto& hold = target.step.hold;
        const bool moves = hold && target.step.holds(*hold) && target.refusal_of(hold->word()) == nullptr;
        return moves ? std::optional(hold->scope) : std::nullopt;
    };
    plan_each(input, [&](std::size_t, PlanLine line) {
        Target& target = all_.at(line.target.name);
        target.before = line.target.scope.effective;
        if (!searches(line.target, policy_) || line.finding == Finding::leave)
            line.candidates = std::vector<Candidate>();
        static_cast<Planned&>(target.plan) = std::move(line);
        make_step(target);
    });
    const DefaultScope& table = policy_.default_scope;
    const auto p = all_.find(kDefaultTarget);
    const bool is_set = table.manage && table.wish.sets_first() && p != all_.end() &&
                        named_only_.why(policy_, p->second.now).empty();
    const std::string left = is_set ? std::string() : followers_to_leave(input);
    default_stays_ = left.empty() ? ""
                                  : "followers must stay at the kernel's scope: " + left +
                                        "; a scope or `plan` in [default_scope] moves them too";
    if (!left.empty() && input.default_moved) leave_followers(all_.at(kDefaultTarget), default_stays_, log_);
}

void Targets::make_step(Target& target) {
    target.step = {};
    const Planned& plan = target.plan;
    Workqueue before = target.before_us();
    if (before.scope.word == "default") before.scope.effective = target.before;
    // A follower is in place where @default was moved to what its rule wants.
    const bool open =
        plan.finding == Finding::in_place && (searches(before, policy_) || plan.now != target.before);
    if ((plan.finding != Finding::change && !open) || edges_.ledger == nullptr) return;
    StepInput in{before, plan, policy_, effective_shard_size(kernel_, policy_)};
    const std::string kind = class_of(target.now.name);
    in.key = [&](const Arms& arms, bool from_policy) {
        return keys_.ledger_key(target.now, arms, from_policy);
    };
    if (edges_.ledger->knows(kind)) in.entry = [&](const LedgerKey& key) { return edges_.ledger->find(key); };
    in.latest = [&](const LedgerKey& key) { return edges_.verdicts.latest(key); };
    in.refuses = [&](const std::string& word) { return target.refusal_of(word) != nullptr; };
    in.now = edges_.now();
    if (const OrderBook* book = edges_.book; book != nullptr) {
        in.rest = [&target, book](const Arms& arms) { return book->rest_of(target.now.name, arms); };
        const auto previous = book->before_upgrade.find(kind);
        if (previous != book->before_upgrade.end()) in.before_upgrade = previous->second;
        in.spent = book->is_spent(target.now.name, in.now, policy_.judge);
    }
    target.step = next_step(in);
}

}  // namespace wq
