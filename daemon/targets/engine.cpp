// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/engine.h"

#include <fmt/format.h>
#include <syslog.h>
#include <algorithm>
#include <set>

#include "machine/kernel_info.h"
#include "owned/writer.h"

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

tl::unexpected<Error> refused(const std::string& name, const No& no) {
    return fail(name + ": " + no.why, no.code);
}

}  // namespace

Targets::Targets(Edges edges, KernelInfo kernel)
    : edges_(std::move(edges)),
      kernel_(std::move(kernel)),
      snapshot_(edges_.log, edges_.read_topology, kernel_),
      log_(edges_.log),
      reconciler_(edges_.files, edges_.store, log_),
      masks_(edges_.files, edges_.store, log_, reconciler_),
      keys_(snapshot_, policy_) {}

std::string Targets::observing() const {
    return why_observing(kernel_, policy_, observe_why_);
}

bool Targets::wants_retry() const {
    const auto retries = [](const auto& item) { return item.second.wants_retry(); };
    return std::ranges::any_of(targets_, retries) || std::ranges::any_of(masks_.masks(), retries);
}

std::string Targets::summary() const {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets_) counts[name_of(target.state)]++;
    std::string out = observing().empty() ? std::string(name_of(policy_.mode)) : "observing: " + observing();
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

std::string Targets::note() const {
    if (!policy_.default_scope.manage || default_stays_.empty()) return "";
    return fmt::format("{}: not moved meanwhile: {}", kDefaultTarget, default_stays_);
}

// An arm with the word `default` means the scope that @default holds. If that is not the scope by which the
// arm is named, a pair would measure something else than its name says.
bool Targets::means_another(const Arms& arms) const {
    const Target* parameter = find(kDefaultTarget);
    if (parameter == nullptr || parameter->in_slot) return false;
    const auto now = parameter->now.scope.effective;
    const auto moved = [&](const Arm& arm) { return arm.word == "default" && now && arm.scope != *now; };
    return moved(arms.reference) || moved(arms.candidate);
}

std::optional<No> Targets::why_not(const Target& target, Use use, const Arms* arms) const {
    if (const std::string why = observing(); !why.empty())
        return No{"nothing is written while observing: " + why, EPERM, true};
    if (!target.now.untouchable.empty()) return No{target.now.untouchable};
    if (target.external)
        return No{left_to_writer(target).reason + "; put the baseline back and reload the policy"};
    if (use == Use::revert) return {};
    if (target.now.name == kDefaultTarget && !default_stays_.empty()) return No{default_stays_};
    if (const std::string& why = snapshot_.pods_unknown; !why.empty()) return No{"pods unknown: " + why};
    if (use == Use::pin) return {};
    const Holder holder = target.holder();
    if (is_order(holder))
        return No{holder == Holder::pin         ? "pinned; unpin it first"
                  : target.entry()->must_stay() ? target.entry()->note
                                                : "reverted by an operator's order; unpin it first",
                  EBUSY, true};
    if (target.is_stuck()) return No{target.stuck_why, EIO};
    if (target.unread) return No{"cannot be read now", EAGAIN};
    if (!target.now.scope.effective) return No{"wq-tuned does not know its current scope", EINVAL};
    if (arms == nullptr) return {};
    if (const Refusal* why = target.refusal_of(arms->candidate.word)) return No{why->reason, EAGAIN};
    if (means_another(*arms)) return No{"@default has another scope than this comparison assumes", EAGAIN};
    return {};
}

// ---- looking

void Targets::look_and_plan() {
    if (snapshot_.look_at_topology()) keys_.forget_pods();
    if (const auto names = edges_.files.names()) {
        std::set<std::string> seen(names->begin(), names->end());
        for (const auto& [name, entry] : edges_.store.entries()) seen.insert(name);
        for (const auto& [name, target] : targets_) seen.insert(name);
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
    complete_ = complete_ && !unread;
    // Memory may be short for a moment. A managed target stays as it is until it can be read.
    if (unread) {
        if (known != targets_.end()) known->second.unread = true;
        if (known != targets_.end() || !now || entry != nullptr) return;
    }
    if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
    Target& target = targets_[name];
    target.store = &edges_.store;
    fill(target, *now, edges_.opted_out);
    if (const auto news = target.notice(now->strict)) reconciler_.leave_to_writer(target, *news);
}

bool Targets::is_as_seen() const {
    if (!complete_ || snapshot_.stale || !reconciler_.unsaved().empty()) return false;
    if (edges_.files.unbound_mask() != unbound_mask_) return false;
    return std::ranges::all_of(edges_.store.entries(), [this](const auto& item) {
        const auto& [name, entry] = item;
        const auto target = targets_.find(name);
        if (target == targets_.end() || target->second.tries_to_go_back()) return false;
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
    const auto before = all_before_us(targets_);
    PlanInput input{snapshot_.topology(),
                    kernel_,
                    policy_,
                    before,
                    snapshot_.pods_unknown,
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
    default_stays_ = left.empty() ? ""
                                  : "followers must stay at the kernel's scope: " + left +
                                        "; a scope or `plan` in [default_scope] moves them too";
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

// ---- deciding

Circumstances Targets::circumstances() const {
    return {observing(), snapshot_.pods_unknown, edges_.book == nullptr ? Waiting() : edges_.book->waiting};
}

void Engine::set_policy(Policy policy) {
    policy_ = std::move(policy);
    log_.start_over();
    masks_.start_over();
    for (auto& [name, target] : targets_) target.start_over();
    if (targets_.empty()) return;  // at the start, not at a reload
    edges_.store.start_over(Knob::scope);
    snapshot_.changed(Udev::Change::cpu);
}

void Engine::changed(Udev::Change change) {
    snapshot_.changed(change);
    if (change != Udev::Change::workqueue && change != Udev::Change::lost) return;
    masks_.changed();
    for (auto& [name, target] : targets_) target.ask_udev = true;
}

// The masks first, because plans are made for the CPUs that masks leave.
void Engine::reconcile() {
    masks_.look(policy_, observing(), edges_.cpus, edges_.opted_out);
    masks_.reconcile();
    look_and_plan();
    write();
}

void Engine::tick(bool whole) {
    if (whole || !masks_.is_as_seen(observing(), edges_.cpus) || !is_as_seen()) return reconcile();
    if (circumstances() != decided_) write();
}

void Engine::look() {
    masks_.look(policy_, observing(), edges_.cpus, edges_.opted_out);
    look_and_plan();
    const Circumstances all = circumstances();
    for (auto& [name, target] : targets_)
        target.show(as_found(target, decide(target, all), reconciler_.unsaved()));
}

void Engine::step_all() {
    plan();  // the plans of followers depend on what @default holds
    write();
}

void Engine::restore_all() {
    wq::restore_all(edges_.files, edges_.store, edges_.log);
    for (auto& [name, target] : targets_) target.last = {};
}

void Engine::keep_all() {
    if (const auto saved = edges_.store.keep(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
}

// @default is put back before its followers, and moved after those that have a setting of their own.
void Engine::write() {
    decided_ = circumstances();
    std::vector<Job> jobs;
    for (auto& [name, target] : targets_) jobs.push_back({&target, decide(target, decided_)});
    std::ranges::stable_sort(jobs, {}, [](const Job& job) {
        return job.item->name() != kDefaultTarget ? 1 : job.wish.word ? 2 : 0;
    });
    reconciler_.run(jobs, decided_.observing);
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
}

// ---- orders

std::optional<No> Engine::ask(const std::string& name, Use use) {
    if (const std::string lacks = lacks_scopes(kernel_); !lacks.empty()) return No{lacks, EOPNOTSUPP};
    look_at(name, edges_.files.unbound_mask());
    const Target* target = find(name);
    return target == nullptr ? No{"no such target", ENOENT} : why_not(*target, use);
}

Status Engine::pin(const std::string& name, const std::string& scope) {
    if (const auto no = ask(name, Use::pin)) return refused(name, *no);
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!kernel_.has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    Target& target = targets_.at(name);
    const Owned* known = target.entry();
    const Owned before = known == nullptr ? Owned{} : *known;
    target.hold(Holder::pin, scope);
    write();
    const Target* after = find(name);
    if (after == nullptr) return fail(name + ": vanished", ENOENT);
    if (after->state == State::pinned) return {};
    if (Owned* entry = after->entry(); entry != nullptr) entry->hold(before.holder, before.note);
    const std::string reason = after->reason;
    write();
    return fail(name + ": " + reason, EIO);
}

Status Engine::unpin(const std::string& name) {
    look_at(name, edges_.files.unbound_mask());
    Owned* entry = edges_.store.find(name);
    if (entry == nullptr || !is_order(entry->holder))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    entry->hold(Holder::policy);
    if (Target* target = target_of(name); target != nullptr) target->hold(Holder::policy);
    step_all();
    const Target* after = find(name);
    // What was not put back is tried again.
    return after == nullptr || after->stuck == 0 ? Status() : fail(name + ": " + after->reason, EIO);
}

Status Engine::revert(const std::optional<std::string>& name) {
    std::vector<std::string> names;
    if (name) {
        if (const auto no = ask(*name, Use::revert)) return refused(*name, *no);
        names.push_back(*name);
    } else {
        if (const std::string why = observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        look_and_plan();
        // Also targets without a setting of ours: they would be planned on their own once @default is held.
        for (const auto& [each, target] : targets_)
            if (!why_not(target, Use::revert)) names.push_back(each);
        // Targets that could not be read since the start get the order, too; it waits until they can be read.
        for (Owned* entry : edges_.store.all())
            if (!entry->is_mask() && find(entry->name) == nullptr) entry->hold(Holder::revert);
    }
    const auto holds_ours = [this](const std::string& each) {
        const Target* target = find(each);
        return target != nullptr && target->holds_ours();
    };
    const auto before = std::ranges::count_if(names, holds_ours);
    for (const std::string& each : names) targets_.at(each).hold(Holder::revert);
    step_all();  // @default must not move what was reverted
    reverts_ += static_cast<unsigned>(before - std::ranges::count_if(names, holds_ours));
    return name && holds_ours(*name) ? fail(*name + ": " + find(*name)->reason, EIO) : Status();
}

// ---- slots: writes with the same checks and saves as all other writes

void Engine::save() {
    if (const auto saved = edges_.store.save(); !saved)
        log_.write_once(LOG_ERR, Event::none, saved.error().text);
}

// The entries on disk say `slot` before the first write.
std::vector<Status> Engine::enter_slot(const std::vector<std::string>& names) {
    std::vector<Status> out;
    for (const std::string& name : names) {
        const Target* known = find(name);
        const ino_t inode = known == nullptr ? 0 : known->now.inode;
        auto no = ask(name, Use::compare);
        if (!no && targets_.at(name).now.inode != inode)
            no = No{"was replaced by another workqueue of the same name", ENODEV};
        out.push_back(no ? Status(refused(name, *no)) : Status());
        if (no) continue;
        Target& target = targets_.at(name);
        target.make_entry().hold(Holder::slot);
        target.in_slot = true;
        target.held = target.now.scope.word;
    }
    if (const auto saved = edges_.store.save(); !saved) {
        leave_slot(names);
        for (Status& each : out)
            if (each) each = tl::unexpected(saved.error().in("its baseline cannot be saved"));
        return out;
    }
    const Circumstances all = circumstances();
    for (std::size_t i = 0; i < names.size(); i++)
        if (out[i]) targets_.at(names[i]).show(decide(targets_.at(names[i]), all).shown());
    return out;
}

// Returns `done` if ARM may be written. A value that changed since our last write is an external writer's,
// even if it is an arm's word or the baseline.
Outcome Engine::may_switch(Target* target, const Arm& arm) {
    using End = Outcome::Kind;
    if (target == nullptr) return {End::gone, false, "vanished", ENOENT};
    if (target->entry() == nullptr || !target->in_slot)
        return {End::permanent, false, "not in a slot", EINVAL};
    // A look noticed the external writer. leave_slot() puts back what is still ours.
    if (target->external) return {End::foreign, false, *target->external, 0};
    const Look seen = wq::look_at(edges_.files, *target->entry());
    if (!seen.scope) return {};  // the write will return the error
    target->now.scope = *seen.scope;
    if (seen.strict) target->now.strict = seen.strict;
    if (seen.found.word == Whose::foreign) return {End::foreign, false, seen.scope->word, 0};
    if (arm.strict && seen.found.strict == Whose::foreign)
        return {End::foreign, false, *seen.strict ? "strict" : "not strict", 0, Knob::strict};
    return {};
}

// Between two windows the entries on disk have exactly the words that are in place.
std::vector<Outcome> Engine::switch_to(const std::vector<std::pair<std::string, Arm>>& switches,
                                       const std::function<std::uint64_t()>& clock) {
    using End = Outcome::Kind;
    std::vector<Outcome> out;
    for (const auto& [name, arm] : switches) {
        Target* target = target_of(name);
        out.push_back(may_switch(target, arm));
        if (out.back().kind == End::done) target->entry()->announce({arm.word, arm.strict});
    }
    const auto saved = edges_.store.save();
    for (std::size_t i = 0; i < switches.size(); i++) {
        const auto& [name, arm] = switches[i];
        Outcome& outcome = out[i];
        Target* target = target_of(name);
        if (target == nullptr) continue;
        if (outcome.kind == End::done && !saved)
            outcome = {End::transient, false, saved.error().in("its baseline cannot be saved").text,
                       saved.error().code};
        if (outcome.kind == End::done) outcome = reconciler_.rewrite(*target, arm, clock);
        if (!target->in_slot) continue;
        if (outcome.kind == End::done) {
            target->wrote({arm.word, arm.strict});
            target->now.scope.effective = arm.scope;
            continue;
        }
        target->in_slot = false;
        if (!target->external && target->entry() != nullptr)
            reconciler_.take_failure(*target, arm.word, outcome);
    }
    save();
    return out;
}

void Engine::leave_slot(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        Target* target = target_of(name);
        if (target == nullptr) continue;
        target->in_slot = false;
        if (target->external && target->holds_ours()) {
            target->entry()->announce_baseline();
            (void)edges_.store.save();  // it is put back even if this fails
            reconciler_.put_half_back(*target);
        }
        make_step(*target);
    }
    write();
    for (const std::string& name : names)
        if (Target* target = target_of(name); target != nullptr) target->held.clear();
}

}  // namespace wq
