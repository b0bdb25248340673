// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/status.h"

#include <algorithm>
#include <vector>

#include "base/version.h"
#include "evidence/verdicts.h"

namespace wq {
namespace {

using nlohmann::json;

json word_or_null(const std::string& word) {
    return word.empty() ? json(nullptr) : json(word);
}

json name_or_null(const std::optional<Scope>& scope) {
    return scope ? json(name_of(*scope)) : json(nullptr);
}

std::string reason_of(const Engine& engine, const Target& target, bool unplanned) {
    // There is no policy in force. "No rule matches" would be true, but misleading.
    if (unplanned && target.plan.finding == Finding::unmanaged && target.reason == target.plan.reason)
        return "cannot plan: invalid policy";
    if (target.unread)
        return target.reason + (target.reason.empty() ? "" : "; ") + "cannot be read now, shown as it was";
    if (target.now.strict != true || !engine.inventory().strict_in_doubt()) return target.reason;
    return target.reason +
           "; strict, but a CPU came online or the machine was suspended since: its workers may run anywhere";
}

json interval_json(const Effect& effect) {
    return effect.interval ? json{effect.interval->low, effect.interval->high} : json(nullptr);
}

template <class T>
json value_or_null(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

json comparison_json(const std::optional<ComparisonView>& view, const Judging& judging) {
    if (!view) return nullptr;
    const ComparisonView& v = *view;
    const Decision& d = v.decision;
    return {{"reference", v.arms.reference.name()},
            {"candidate", v.arms.candidate.name()},
            {"course", name_of(v.course)},
            {"by_order", v.by_order},
            {"verdict", name_of(v.judgement)},
            {"pair", d.pairs + 1},
            {"pairs", d.pairs},
            {"max_pairs", judging.settings.max_pairs},
            {"counter", d.counter},
            {"effect_percent", d.pairs > 0 ? json(v.effect.percent) : json(nullptr)},
            {"interval_percent", interval_json(v.effect)},
            {"e_regressed", evidence_of(d.log_worse)},
            {"e_improved", evidence_of(d.log_better)},
            {"lost_seconds", v.lost_seconds},
            {"budget_seconds", judging.budget.count()},
            {"phase", v.measuring ? "measuring" : "waiting"},
            {"next_pair", value_or_null(v.next_pair)},
            {"reason", v.waits}};
}

json policy_state_json(const PolicyState& policy, const std::vector<Origin>& expired) {
    json rules = json::array();
    for (const Origin& rule : expired) rules.push_back(rule.text());
    return {{"expired", std::move(rules)},
            {"state", policy.error.empty() ? "loaded" : "broken"},
            {"error", word_or_null(policy.error)},
            {"since", value_or_null(policy.since)},
            {"in_force", value_or_null(policy.in_force)}};
}

json target_json(const Engine& engine, const std::optional<ComparisonView>& view, const Target& target,
                 bool unplanned) {
    const BaselineEntry* entry = engine.ownership().entry(target.now.name);
    const auto outcome = outcome_of(target, view);
    return {{"name", target.now.name},
            {"kind", name_of(target.now.kind)},
            {"scope", word_or_null(target.now.scope.word)},
            {"effective", name_or_null(target.now.scope.effective)},
            {"baseline", word_or_null(entry != nullptr ? entry->scope : target.now.scope.word)},
            {"order", word_or_null(entry == nullptr ? "" : std::string(name_of_order(entry->holder)))},
            {"planned", name_or_null(target.plan.planned)},
            {"state", name_of(target.state)},
            {"reason", reason_of(engine, target, unplanned)},
            {"strict", target.now.strict ? json(*target.now.strict) : json(nullptr)},
            {"outcome", outcome ? json(name_of(*outcome)) : json(nullptr)},
            {"comparison", comparison_json(view, engine.policy().judge)},
            {"verdict", target.step.verdict != nullptr ? to_json(*target.step.verdict) : json(nullptr)}};
}

// "next_pair": when the next pair of any target is due, null if that is not known.
json experiments_json(const Experiment* experiment, const std::vector<ComparisonView>& views) {
    if (experiment == nullptr) return nullptr;
    std::optional<std::int64_t> next;
    for (const ComparisonView& view : views)
        if (view.next_pair && (!next || *view.next_pair < *next)) next = view.next_pair;
    const ExperimentTotals& totals = experiment->totals();
    return {{"reason", word_or_null(experiment->why_no_slot())},
            {"measuring", std::ranges::count(views, true, &ComparisonView::measuring)},
            {"next_pair", value_or_null(next)},
            {"slots", totals.slots},
            {"pairs", totals.pairs},
            {"pairs_dropped", totals.pairs_dropped},
            {"windows_lost", totals.windows_lost}};
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

// A candidate that regressed counts as regressed also while it is tried again.
std::optional<Judgement> outcome_of(const Target& target, const std::optional<ComparisonView>& view) {
    const Step& step = target.step;
    if (step.kind == Step::Kind::kept) return Judgement::improved;
    const bool regressed = (view && view->judgement == Judgement::regressed) ||
                           (step.verdict != nullptr && step.verdict->outcome == Judgement::regressed);
    if (regressed) return Judgement::regressed;
    if (step.kind == Step::Kind::reverted || (view && view->decision.pairs > 0)) return Judgement::undecided;
    return {};
}

json status_json(const Engine& engine, const Experiment* experiment, const std::string& daemon_state,
                 const PolicyState& policy) {
    json targets = json::array();
    std::vector<ComparisonView> views;
    for (const auto& [name, target] : engine.targets()) {
        const auto view = experiment != nullptr ? experiment->view_of(name) : std::nullopt;
        targets.push_back(target_json(engine, view, target, policy.nothing_to_plan_by()));
        if (view) views.push_back(*view);
    }
    return {{"daemon",
             {{"state", daemon_state},
              {"mode", name_of(engine.policy().mode)},
              {"version", version()},
              {"reason", engine.observing()},
              {"hosts", hosts_in_force(engine.policy())},
              {"policy", policy_state_json(policy, engine.policy().expired_rules())},
              {"experiments", experiments_json(experiment, views)},
              {"writes", engine.writes()},
              {"topology_reads", engine.inventory().topology_reads()}}},
            {"targets", std::move(targets)}};
}

json masks_json(const MaskKeeper& masks) {
    json out = json::array();
    for (const auto& [name, mask] : masks.masks()) {
        const MaskEntry* entry = masks.entry(name);
        const CpuSet baseline = entry != nullptr ? entry->before() : mask.now.cpus;
        const bool has_mask = !mask.now.text.empty();
        out.push_back({{"name", name},
                       {"cpumask", has_mask ? json(mask.now.effective.list()) : json(nullptr)},
                       {"baseline", has_mask ? json(baseline.list()) : json(nullptr)},
                       {"planned", word_or_null(mask.planned.list())},
                       {"state", name_of(mask.state)},
                       {"reason", mask.reason}});
    }
    return out;
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
