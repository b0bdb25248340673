// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/status.h"

#include "base/version.h"

namespace wq {
namespace {

using nlohmann::json;

json word_or_null(const std::string& word) {
    return word.empty() ? json(nullptr) : json(word);
}

json name_or_null(const std::optional<Scope>& scope) {
    return scope ? json(name_of(*scope)) : json(nullptr);
}

std::string reason_of(const Tuner& tuner, const Target& target, bool unplanned) {
    // There are no rules: that none matches would be true, and misleading.
    if (unplanned && target.plan.finding == Finding::unmanaged && target.reason == target.plan.reason)
        return "cannot plan: invalid policy";
    if (target.unread)
        return target.reason + (target.reason.empty() ? "" : "; ") + "cannot be read now, shown as it was";
    if (target.now.strict != true || !tuner.strict_in_doubt()) return target.reason;
    return target.reason +
           "; strict, but a CPU came online or the machine was suspended since: its workers may run anywhere";
}

json interval_json(const Effect& effect) {
    return effect.interval ? json{effect.interval->low, effect.interval->high} : json(nullptr);
}

json trial_json(const std::optional<Progress>& progress) {
    if (!progress) return nullptr;
    const Progress& p = *progress;
    return {{"baseline", p.arms.baseline.name()},
            {"candidate", p.arms.candidate.name()},
            {"pair", p.pair},
            {"max_pairs", p.max_pairs},
            {"dropped", p.dropped},
            {"lost", p.lost},
            {"counter", p.standing.counter},
            {"effect_percent", p.standing.pairs > 0 ? json(p.standing.effect.percent) : json(nullptr)},
            {"interval_percent", interval_json(p.standing.effect)},
            {"e_regressed", evidence_of(p.standing.log_regressed)},
            {"e_improved", evidence_of(p.standing.log_improved)},
            {"phase", p.phase},
            {"reason", p.reason}};
}

template <class T>
json value_or_null(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

json policy_state_json(const PolicyState& policy) {
    return {{"state", policy.error.empty() ? "loaded" : "broken"},
            {"error", word_or_null(policy.error)},
            {"since", value_or_null(policy.since)},
            {"in_force", value_or_null(policy.in_force)}};
}

json target_json(const Tuner& tuner, const Trials* trials, const Target& target, bool unplanned) {
    const BaselineEntry* entry = tuner.baseline_of(target.now.name);
    return {{"name", target.now.name},
            {"kind", name_of(target.now.kind)},
            {"scope", word_or_null(target.now.scope.word)},
            {"effective", name_or_null(target.now.scope.effective)},
            {"baseline", word_or_null(entry != nullptr ? entry->scope : target.now.scope.word)},
            {"planned", name_or_null(target.plan.planned)},
            {"state", name_of(target.state)},
            {"reason", reason_of(tuner, target, unplanned)},
            {"strict", target.now.strict ? json(*target.now.strict) : json(nullptr)},
            {"trial", trials != nullptr ? trial_json(trials->progress_of(target.now.name)) : json(nullptr)},
            {"verdict", target.step.verdict != nullptr ? to_json(*target.step.verdict) : json(nullptr)}};
}

}  // namespace

void PolicyState::loaded(std::int64_t now) {
    error.clear();
    since = in_force = now;
}

void PolicyState::broken(const PolicyErrors& errors, std::int64_t now) {
    if (error.empty()) since = now;
    error = errors.front().text();
}

json status_json(const Tuner& tuner, const Trials* trials, const std::string& daemon_state,
                 const PolicyState& policy) {
    json targets = json::array();
    for (const auto& [name, target] : tuner.targets())
        targets.push_back(target_json(tuner, trials, target, policy.nothing_to_plan_by()));
    return {{"daemon",
             {{"state", daemon_state},
              {"mode", name_of(tuner.policy().mode)},
              {"version", version()},
              {"reason", tuner.observing()},
              {"hosts", hosts_in_force(tuner.policy())},
              {"policy", policy_state_json(policy)},
              {"writes", tuner.writes()},
              {"topology_reads", tuner.topology_reads()}}},
            {"targets", std::move(targets)}};
}

std::vector<std::string> hosts_in_force(const Policy& policy) {
    std::vector<std::string> out;
    for (const HostMatch& host : policy.hosts)
        if (host.matches()) out.push_back(host.name);
    return out;
}

std::string dump_json(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace wq
