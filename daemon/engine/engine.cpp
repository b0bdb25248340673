// SPDX-License-Identifier: LGPL-2.1-or-later
// What is asked of a tuner, and what it tells. How it looks is in tuner_look.cpp, how it acts in
// tuner_act.cpp, orders are in tuner_orders.cpp.
#include "engine/engine.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>

#include "engine/restore.h"
#include "model/lacks_scopes.h"

namespace wq {

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
        case State::trial:
            return "trial";
        case State::applied:
            return "applied";
        case State::kept:
            return "kept";
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

void Tuner::set_policy(Policy policy) {
    policy_ = std::move(policy);
    said_.clear();
    for (auto& [name, target] : targets_) {
        target.external = false;
        target.last_word.clear();
        target.last_strict.reset();
        target.refused.reset();
        target.failures = target.stuck = 0;
    }
    if (targets_.empty()) return;  // at the start, which is no reload
    for (const auto& [name, known] : edges_.store.entries()) {
        BaselineEntry& entry = *edges_.store.find(name);
        if (is_reverted(&known)) entry.order.clear();
        entry.external = false;
        entry.announce_baseline();  // what somebody else put back is taken up again
    }
    topology_stale_ = true;
    doubts_ = 0;
}

void Tuner::expire(std::int64_t now) {
    policy_.expire(now);
}

void Tuner::observe(std::string why) {
    observe_why_ = std::move(why);
}

std::string Tuner::observing() const {
    const std::string lacks = lacks_scopes(kernel_);
    if (!lacks.empty()) return observe_why_.empty() ? lacks : fmt::format("{}; {}", observe_why_, lacks);
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
        const char* next = target.failures > 0 ? "about to be tried again: " : "about to be applied: ";
        target.reason = unsaved_.empty() ? next + target.reason : unsaved_;
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

void Tuner::keep_all() {
    std::vector<std::string> names;
    for (const auto& [name, entry] : edges_.store.entries()) names.push_back(name);
    for (const std::string& name : names) {
        BaselineEntry& entry = *edges_.store.find(name);
        // What was to go back, and could not, goes back even so: the restorer finds it by the mark of a
        // trial.
        const bool goes_back = entry.has_claim() && (is_on_trial(&entry) || is_reverted(&entry));
        entry.order = goes_back ? kTrial : "";
        if (!entry.has_claim() && !entry.external) edges_.store.remove(name);
    }
    if (const auto saved = edges_.store.save(); !saved)
        edges_.log.write({LOG_ERR, Event::none, saved.error().text});
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
    if (targets_.empty()) out += "; no workqueues to tune";
    for (const auto& [state, n] : counts) out += fmt::format("; {} {}", n, state);
    return out;
}

void Tuner::log(int priority, Event event, const Target& target, const std::string& text,
                std::vector<std::pair<std::string, std::string>> more) {
    more.emplace_back("WQ_NAME", target.now.name);
    edges_.log.write({priority, event, target.now.name + ": " + text, std::move(more)});
}

// What is true of many targets, or at every tick, is said once between two reloads.
void Tuner::say_once(int priority, Event event, const std::string& text,
                     std::vector<std::pair<std::string, std::string>> fields) {
    if (said_.size() < kMaxSaid && said_.insert(text).second)
        edges_.log.write({priority, event, text, std::move(fields)});
}

}  // namespace wq
