// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tuner/tuner.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <set>

#include "kernel/udev.h"
#include "tuner/restore.h"

namespace wq {
namespace {

constexpr unsigned kTries = 3;
constexpr const char* kPin = "pin ";
constexpr const char* kRevert = "revert";
constexpr const char* kExternal = "external";  // not an order, but as lasting: somebody else's until a reload

std::optional<std::string> pinned_scope(const BaselineEntry* entry) {
    if (entry == nullptr || !entry->order.starts_with(kPin)) return std::nullopt;
    return entry->order.substr(std::string_view(kPin).size());
}

bool is_external(const BaselineEntry* entry) {
    return entry != nullptr && entry->order == kExternal;
}

bool is_reverted(const BaselineEntry* entry) {
    return entry != nullptr && entry->order == kRevert;
}

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

bool failed(const Outcome& outcome) {
    return outcome.kind == Outcome::Kind::permanent || outcome.kind == Outcome::Kind::transient;
}

}  // namespace

std::string_view name_of(State state) {
    switch (state) {
        case State::unmanaged:
            return "unmanaged";
        case State::leave:
            return "leave";
        case State::as_planned:
            return "as-planned";
        case State::waiting:
            return "waiting";
        case State::applied:
            return "applied";
        case State::reverted:
            return "reverted";
        case State::pinned:
            return "pinned";
        case State::external:
            return "external";
        case State::unsupported:
            return "unsupported";
        case State::quarantined:
            return "quarantined";
    }
    return "?";
}

// ---- what is asked of it

void Tuner::set_policy(Policy policy) {
    policy_ = std::move(policy);
    said_.clear();
    for (auto& [name, target] : targets_) {
        target.external = false;
        target.last_word.clear();
        target.last_strict.reset();
        target.refused_word.clear();
        target.failures = target.stuck = 0;
        BaselineEntry* entry = edges_.store.find(name);
        if (is_reverted(entry) || is_external(entry)) entry->order.clear();
    }
}

void Tuner::observe(std::string why) {
    observe_why_ = std::move(why);
}

std::string Tuner::observing() const {
    if (!observe_why_.empty()) return observe_why_;
    return policy_.mode == Mode::observe ? "mode is observe" : "";
}

void Tuner::reconcile() {
    refresh_topology();
    refresh_targets();
    plan_targets();
    apply_wishes();
}

void Tuner::look() {
    refresh_topology();
    refresh_targets();
    plan_targets();
    for (auto& [name, target] : targets_) show(target);
}

// The state of a target as its files are now, before anything is done about it.
void Tuner::show(Target& target) {
    const Wish wish = wish_for(target);
    if (wish.hands_off) return;
    if (target.stuck >= kTries) return show_stuck(target);
    if (wish.word && !is_so(target, wish)) {
        target.state = State::waiting;
        target.reason = "about to be applied: " + target.reason;
    } else if (!wish.word && holds_ours(target)) {
        target.state = State::applied;
        target.reason = "left in force";
    }
}

void Tuner::restore_all() {
    restore_entries(edges_.files, edges_.store, edges_.log);
    for (auto& [name, target] : targets_) {
        target.last_word.clear();
        target.last_strict.reset();
    }
}

Result<Target*> Tuner::find_for_order(const std::string& name) {
    refresh_target(name);
    const auto found = targets_.find(name);
    if (found == targets_.end()) return fail(name + ": no such target", ENOENT);
    Target& target = found->second;
    if (!target.now.untouchable.empty()) return fail(name + ": " + target.now.untouchable, EPERM);
    if (target.external)
        return fail(fmt::format("{}: external: holds '{}', which somebody else wrote; put it back and reload",
                                name, target.now.scope.word),
                    EPERM);
    if (const std::string why = observing(); !why.empty())
        return fail(fmt::format("{}: nothing is written while observing: {}", name, why), EPERM);
    return &target;
}

Status Tuner::pin(const std::string& name, const std::string& scope) {
    const auto found = find_for_order(name);
    if (!found) return tl::unexpected(found.error());
    Target& target = **found;
    const auto wanted = scope_named(scope);
    if (!wanted) return fail(fmt::format("'{}' is not a scope", scope), EINVAL);
    if (!kernel_.has(*wanted)) return fail(fmt::format("this kernel has no {}", scope), EOPNOTSUPP);
    if (!pods_unknown_.empty()) return fail("pods unknown: " + pods_unknown_, EPERM);
    target.refused_word.clear();
    prepare(target, {.word = scope});
    edges_.store.find(name)->order = kPin + scope;
    apply_wishes();
    const auto after = targets_.find(name);
    if (after == targets_.end()) return fail(name + ": vanished", ENOENT);
    if (after->second.state == State::pinned) return {};
    if (BaselineEntry* entry = edges_.store.find(name)) entry->order.clear();
    const std::string reason = after->second.reason;
    apply_wishes();
    return fail(name + ": " + reason, EIO);
}

Status Tuner::unpin(const std::string& name) {
    refresh_target(name);
    BaselineEntry* entry = edges_.store.find(name);
    if (entry == nullptr || entry->order.empty() || is_external(entry))
        return fail(name + ": neither pinned nor reverted", ENOENT);
    entry->order.clear();
    apply_wishes();
    return {};
}

Status Tuner::revert(const std::optional<std::string>& name) {
    std::vector<std::string> names;
    if (name) {
        if (const auto found = find_for_order(*name); !found) return tl::unexpected(found.error());
        names.push_back(*name);
    } else {
        if (const std::string why = observing(); !why.empty())
            return fail("nothing is written while observing: " + why, EPERM);
        refresh_targets();
        plan_targets();
        for (const auto& [each, target] : targets_)
            if (!target.external &&
                (edges_.store.find(each) != nullptr || target.plan.finding == Finding::change))
                names.push_back(each);
    }
    for (const std::string& each : names) {
        const Workqueue& now = targets_.at(each).now;
        if (edges_.store.find(each) == nullptr)
            edges_.store.put({each, now.inode, now.scope.word, now.strict, {}, {}, ""});
        edges_.store.find(each)->order = kRevert;
    }
    apply_wishes();
    return {};
}

bool Tuner::wants_retry() const {
    return std::any_of(targets_.begin(), targets_.end(), [](const auto& item) {
        return item.second.failures > 0 && item.second.failures < kTries;
    });
}

std::string Tuner::summary() const {
    std::map<std::string_view, unsigned> counts;
    for (const auto& [name, target] : targets_) counts[name_of(target.state)]++;
    std::string out = observing().empty() ? std::string(name_of(policy_.mode)) : "observing: " + observing();
    if (kernel_.scopes.empty()) out += "; this kernel has no affinity scopes, nothing to tune";
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

// ---- looking

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
    for (const auto& entry : std::map(edges_.store.entries())) seen.insert(entry.first);
    for (const auto& [name, target] : targets_) seen.insert(name);
    for (const std::string& name : seen) refresh_target(name);
}

void Tuner::refresh_target(const std::string& name) {
    const auto now = edges_.files.read(name);
    if (!now) {
        if (kind_of_error(now.error().code) == Outcome::Kind::gone) return forget(name);
        say_once(LOG_WARNING, Event::none, now.error().text);
        if (const auto known = targets_.find(name); known != targets_.end())
            known->second.now.untouchable = now.error().text;
        return;
    }
    const auto known = targets_.find(name);
    if (known != targets_.end() && known->second.now.inode != now->inode) forget(name);
    const BaselineEntry* entry = edges_.store.find(name);
    if (entry != nullptr && entry->inode != now->inode) edges_.store.remove(name);
    Target& target = targets_[name];
    target.now = *now;
    if (!target.opted_out) target.opted_out = now->kind != Kind::default_scope && edges_.opted_out(name);
    if (target.now.untouchable.empty() && *target.opted_out) target.now.untouchable = kOptedOutByUdev;
    notice_foreign(target);
}

void Tuner::forget(const std::string& name) {
    targets_.erase(name);
    edges_.store.remove(name);
}

// The word and the strictness of a target that we manage change by our writes alone, written to already or
// not. What else is found is somebody else's; one of our own words, too, if it is not the one that we left
// there.
void Tuner::notice_foreign(Target& target) {
    const std::string& word = target.now.scope.word;
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    const bool planned = target.plan.finding == Finding::in_place || target.plan.finding == Finding::change;
    if (is_external(entry) && !target.external) {
        target.external = true;
        target.external_text = word;
    }
    if ((entry != nullptr || planned) && !target.external) {
        const bool unknown = entry != nullptr && word != entry->scope && !entry->may_be_ours(word);
        const bool changed = !target.last_word.empty() && word != target.last_word;
        const bool strict_is_ours = planned ? target.plan.strict.has_value() : entry->may_strict.has_value();
        const bool strict_changed =
            strict_is_ours && target.last_strict && target.now.strict != target.last_strict;
        if (unknown || changed)
            set_external(target, word);
        else if (strict_changed)
            set_external_strict(target);
    }
    target.last_word = word;
    target.last_strict = target.now.strict;
}

// Lasting: no restore and no restart takes the word for ours again, even if it once was.
void Tuner::set_external(Target& target, const std::string& word) {
    if (BaselineEntry* entry = edges_.store.find(target.now.name)) {
        entry->may_hold.clear();
        entry->order = kExternal;
    }
    target.external = true;
    target.external_text = word;
    log(LOG_NOTICE, Event::external, target,
        fmt::format("holds '{}', which somebody else wrote; hands off until a reload", word),
        {{"WQ_SCOPE_NEW", word}});
}

// The strictness alone is somebody else's; the word, where it is ours, still goes back in the end.
void Tuner::set_external_strict(Target& target) {
    if (BaselineEntry* entry = edges_.store.find(target.now.name)) {
        entry->may_strict.reset();
        entry->order = kExternal;
    }
    target.external = true;
    target.external_text = target.now.strict == true ? "strict" : "not strict";
    log(LOG_NOTICE, Event::external, target,
        fmt::format("is {}, which somebody else wrote; hands off until a reload", target.external_text),
        {{"WQ_SCOPE_NEW", target.now.scope.word}});
}

bool Tuner::holds_ours(const Target& target) const {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    if (entry == nullptr) return false;
    const bool strict =
        entry->may_strict && target.now.strict == entry->may_strict && entry->may_strict != entry->strict;
    return strict || (target.now.scope.word != entry->scope && entry->may_be_ours(target.now.scope.word));
}

// ---- planning

// The target as it would be without us: plans are made from there, so that what we did does not argue for
// itself.
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
    return target.external || (entry != nullptr && !entry->order.empty());
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
    const auto plan = [&] {
        return make_plan({known_.topology(), kernel_, policy_, before, pods_unknown_,
                          effective_shard_size(kernel_, policy_)});
    };
    for (PlanLine& line : plan()) targets_.at(line.target.name).plan = std::move(line);
    // A kernel that refuses what is planned for @default moves no follower: they are planned again, for
    // themselves.
    const auto parameter = targets_.find(kDefaultTarget);
    if (parameter == targets_.end() || !is_refused(parameter->second)) return;
    for (Workqueue& w : before)
        if (w.kind == Kind::default_scope) w.untouchable = parameter->second.refused_reason;
    for (PlanLine& line : plan())
        if (line.target.kind != Kind::default_scope) targets_.at(line.target.name).plan = std::move(line);
}

bool Tuner::is_refused(const Target& target) {
    return target.plan.finding == Finding::change && target.plan.planned &&
           name_of(*target.plan.planned) == target.refused_word;
}

// ---- deciding

Tuner::Wish Tuner::wish_for(Target& target) {
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    const auto set = [&](State state, std::string reason) {
        target.state = state;
        target.reason = std::move(reason);
    };
    if (target.external) {
        set(State::external, fmt::format("somebody else wrote '{}'", target.external_text));
        return {.hands_off = true};
    }
    if (const std::string why = observing(); !why.empty()) {
        const bool change = target.plan.finding == Finding::change;
        set(state_of(target.plan.finding), change ? "observing: " + why : target.plan.reason);
        return {};
    }
    if (const auto scope = pinned_scope(entry)) {
        if (*scope == target.refused_word) {
            set(target.refused_as, target.refused_reason);
            return {};
        }
        set(State::pinned, "by an operator's order");
        // No new writes while pods are unknown, on an old order either.
        return {.word = *scope, .hands_off = !pods_unknown_.empty()};
    }
    if (is_reverted(entry)) {
        set(State::reverted, "by an operator's order");
        return {};
    }
    return wish_by_plan(target);
}

Tuner::Wish Tuner::wish_by_plan(Target& target) {
    const PlanLine& plan = target.plan;
    target.state = state_of(plan.finding);
    target.reason = plan.reason;
    if (plan.finding == Finding::unsupported && plan.rule)
        say_once(LOG_NOTICE, Event::unsupported, fmt::format("{}: {}", plan.rule->text(), plan.reason));
    if (plan.finding == Finding::pods_unknown) {
        if (holds_ours(target)) target.state = State::applied;
        return {.hands_off = true};
    }
    if (plan.finding != Finding::change) return {};
    if (!policy_.apply_unjudged) {
        target.reason = "guard: stays at its baseline until it is judged; plan: " + plan.reason;
        return {};
    }
    // Where only the strictness is to change, the word stays, "default" included.
    const bool same_scope = plan.planned == plan.target.scope.effective;
    const std::string word = same_scope ? plan.target.scope.word : std::string(name_of(*plan.planned));
    if (word == target.refused_word) {
        target.state = target.refused_as;
        target.reason = target.refused_reason;
        return {};
    }
    target.state = State::applied;
    // A strictness of ours that no rule names any more goes back.
    const BaselineEntry* entry = edges_.store.find(target.now.name);
    const bool strict_is_ours = entry != nullptr && entry->may_strict;
    return {.word = word, .strict = plan.strict || !strict_is_ours ? plan.strict : entry->strict};
}

// ---- doing

// All baselines are on disk before the first write, in one go: a thousand targets cost one fsync.
void Tuner::apply_wishes() {
    std::vector<std::pair<std::string, Wish>> wishes;
    for (auto& [name, target] : targets_) {
        wishes.emplace_back(name, wish_for(target));
        target.decided = true;
        const Wish& wish = wishes.back().second;
        if (wish.word && !wish.hands_off && !is_so(target, wish))
            prepare(target, wish);
        else
            target.failures = 0;  // no try is left to be made
    }
    const auto saved = edges_.store.save();
    if (!saved) say_once(LOG_ERR, Event::baseline_broken, saved.error().in("no new settings").text);
    for (const auto& [name, wish] : wishes) {
        Target& target = targets_.at(name);
        if (wish.hands_off) continue;
        if (!wish.word) {
            put_back(target);  // what is put back was on disk before it was written
        } else if (saved) {
            carry_out(target, wish);
        } else if (!is_so(target, wish)) {
            target.state = State::waiting;
            target.reason = saved.error().in("its baseline cannot be saved").text;
        }
    }
    std::erase_if(targets_, [](const auto& item) { return item.second.gone; });
    if (const auto again = edges_.store.save(); !again) say_once(LOG_ERR, Event::none, again.error().text);
}

bool Tuner::is_so(const Target& target, const Wish& wish) {
    return target.now.scope.word == wish.word && (!wish.strict || wish.strict == target.now.strict);
}

void Tuner::prepare(const Target& target, const Wish& wish) {
    const Workqueue& now = target.now;
    if (edges_.store.find(now.name) == nullptr)
        edges_.store.put({now.name, now.inode, now.scope.word, now.strict, {}, {}, ""});
    BaselineEntry& entry = *edges_.store.find(now.name);
    entry.allow(*wish.word);
    if (const std::string other = misparse_of(*wish.word); !other.empty()) entry.allow(other);
    if (wish.strict && wish.strict != entry.strict) entry.may_strict = wish.strict;
}

void Tuner::carry_out(Target& target, const Wish& wish) {
    if (is_so(target, wish)) return;
    const std::string old = target.now.scope.word;
    const Outcome outcome = apply(edges_.files, *edges_.store.find(target.now.name), *wish.word, wish.strict);
    using Kind = Outcome::Kind;
    if (outcome.kind != Kind::done) {
        if (!outcome.stored.empty()) edges_.store.find(target.now.name)->allow(outcome.stored);
        look_again(target);
        return settle_failure(target, *wish.word, outcome);
    }
    target.failures = 0;
    target.last_word = *wish.word;
    target.now.scope = {*wish.word,
                        *wish.word == "default" ? target.now.scope.effective : scope_named(*wish.word)};
    if (wish.strict) target.now.strict = target.last_strict = wish.strict;
    BaselineEntry& entry = *edges_.store.find(target.now.name);
    if (wish.strict == entry.strict) entry.may_strict.reset();  // back at the baseline: ours no more
    log(LOG_INFO, Event::applied, target, fmt::format("'{}' -> '{}': {}", old, *wish.word, target.reason),
        {{"WQ_SCOPE_OLD", old}, {"WQ_SCOPE_NEW", *wish.word}});
}

// After a failure the file may hold our word, the baseline or a misparse: what we left there is not foreign.
void Tuner::look_again(Target& target) {
    const auto scope = edges_.files.read_scope(target.now.name, target.now.inode);
    target.last_word = scope ? scope->word : "";
    target.last_strict.reset();
    if (scope) target.now.scope = *scope;
}

void Tuner::settle_failure(Target& target, const std::string& word, const Outcome& outcome) {
    using Kind = Outcome::Kind;
    switch (outcome.kind) {
        case Kind::done:
            return;
        case Kind::gone:
            edges_.store.remove(target.now.name);
            target.gone = true;
            return;
        case Kind::foreign:
            set_external(target, outcome.text);
            (void)wish_for(target);
            return;
        case Kind::unsupported:
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
    target.refused_word = word;
    target.refused_as = target.state = as;
    target.refused_reason = target.reason = reason;
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
    const Outcome outcome = restore(edges_.files, *entry);
    if (failed(outcome)) {
        look_again(target);
        target.stuck++;
        target.refused_reason = fmt::format("not put back to '{}': {}", entry->scope, outcome.text);
        show_stuck(target);
        return say_once(LOG_ERR, Event::quarantined, fmt::format("{}: {}", entry->name, target.reason));
    }
    target.stuck = 0;
    if (outcome.kind == Outcome::Kind::foreign) {
        set_external(target, outcome.text);
        (void)wish_for(target);
        return;
    }
    if (outcome.kind == Outcome::Kind::gone) target.gone = true;
    if (outcome.wrote) {
        log(LOG_INFO, Event::restored, target, fmt::format("back to '{}'", entry->scope),
            {{"WQ_SCOPE_OLD", target.now.scope.word}, {"WQ_SCOPE_NEW", entry->scope}});
        if (entry->strict) target.now.strict = entry->strict;
        target.now.scope = plan_scope_of(target, entry->scope);
        target.last_word = entry->scope;
        target.last_strict = target.now.strict;
    }
    entry->may_hold.clear();
    entry->may_strict.reset();
    if (entry->order.empty()) edges_.store.remove(target.now.name);
}

// A baseline that the kernel refuses to take is tried again at exit and after a reload, not at every tick.
void Tuner::show_stuck(Target& target) {
    target.state = State::quarantined;
    target.reason = target.refused_reason;
}

ScopeFile Tuner::plan_scope_of(const Target& target, const std::string& word) const {
    return {word, word == "default" ? target.plan.target.scope.effective : scope_named(word)};
}

// ---- telling

void Tuner::log(int priority, Event event, const Target& target, const std::string& text,
                std::vector<std::pair<std::string, std::string>> more) {
    more.emplace_back("WQ_NAME", target.now.name);
    edges_.log.write({priority, event, target.now.name + ": " + text, std::move(more)});
}

// What is true of many targets, or at every tick, is said once between two reloads.
void Tuner::say_once(int priority, Event event, const std::string& text) {
    if (said_.size() < kMaxSaid && said_.insert(text).second) edges_.log.write({priority, event, text});
}

}  // namespace wq
