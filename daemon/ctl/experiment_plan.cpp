// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/experiment_plan.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ctl/json_values.h"
#include "targets/candidates.h"

namespace wq::ctl {
namespace {

// The maximum number of comparisons for CANDIDATES, which are compared with the reference in this order. An
// undecided candidate is also compared with a later one that improved, if it is finer than that one or is the
// plan (targets/candidates.h).
std::size_t most_comparisons(const PlanLine& line, const std::vector<Arm>& candidates) {
    const Arm plan = planned_arm(line.target, line);
    std::size_t count = candidates.size();
    for (std::size_t later = 0; later < candidates.size(); later++)
        for (std::size_t i = 0; i < later; i++)  // a plan's candidates are sorted, the coarsest first
            if (candidates[i] == plan ||
                candidate_with(line, candidates[i].scope) > candidate_with(line, candidates[later].scope))
                count++;
    return count;
}

std::vector<Arm> would_compare(const Machine& machine, const PlanLine& line) {
    if (line.action == Action::skip) return {};
    return candidates_of({line.target, line, machine.policy, machine.shard_size, {}, {}, {}, 0});
}

TargetExperiments experiments_on(const Machine& machine, const PlanLine& line) {
    TargetExperiments out{line.target.name, "", {}, 0, ""};
    if (line.action == Action::skip) {
        out.reason = line.reason;
        return out;
    }
    out.reference = baseline_arm(line.target, line).name();
    const std::vector<Arm> candidates = would_compare(machine, line);
    for (const Arm& arm : candidates) out.candidates.push_back(arm.name());
    out.comparisons = most_comparisons(line, candidates);
    const ScopeWish& wish = *wish_for(line.target, machine.policy);
    if (out.candidates.empty())
        out.reason = wish.hold           ? "the rule holds it: compared only by order"
                     : wish.sets_first() ? "the scope of the rule is in place"
                                         : "no candidate makes other pools";
    return out;
}

}  // namespace

// A slot with a pair has a lead as long as a washout, two windows, and a drain as long as a washout
// (experiment/slot.h). Targets share slots; @default has slots of its own.
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines) {
    const Judging& judge = machine.policy.judge;
    ExperimentPlan out;
    out.slot_seconds = 2 * std::chrono::duration<double>(judge.window + judge.washout).count();
    std::size_t all = 0;
    std::size_t most = 0;
    std::size_t alone = 0;
    for (const PlanLine& line : lines) {
        out.targets.push_back(experiments_on(machine, line));
        const std::size_t n = out.targets.back().comparisons;
        if (line.target.kind == Kind::default_scope) {
            alone = n;
        } else {
            all += n;
            most = std::max(most, n);
        }
    }
    const std::size_t rounds = std::max(most, (all + judge.concurrent - 1) / judge.concurrent) + alone;
    out.most_seconds = static_cast<double>(rounds * judge.settings.max_pairs) * out.slot_seconds;
    return out;
}

std::size_t most_pairs(const Machine& machine, const TargetExperiments& target) {
    return machine.policy.judge.settings.max_pairs * target.comparisons;
}

nlohmann::json experiments_json(const Machine& machine, const ExperimentPlan& plan,
                                const TargetExperiments& target) {
    const std::size_t pairs = most_pairs(machine, target);
    return {{"name", target.name},
            {"reference", word_or_null(target.reference)},
            {"candidates", target.candidates},
            {"pairs", pairs},
            {"seconds", static_cast<double>(pairs) * plan.slot_seconds},
            {"reason", target.reason}};
}

nlohmann::json plan_json(const Machine& machine, const PlanLine& line) {
    using nlohmann::json;
    json candidates = json::array();
    json compared = json::array();
    for (const Arm& arm : would_compare(machine, line)) compared.push_back(name_of(arm.scope));
    for (const Candidate& c : line.candidates)
        candidates.push_back({{"scope", name_of(c.scope)},
                              {"pools", c.pools},
                              {"cores_per_pool", {c.min_cores, c.max_cores}}});
    const Workqueue& target = line.target;
    return {{"name", target.name},
            {"kind", name_of(target.kind)},
            {"scope", word_or_null(target.scope.word)},
            {"effective", name_or_null(target.scope.effective)},
            {"planned", name_or_null(line.planned)},
            {"action", name_of(line.action)},
            {"reason", line.reason},
            {"rule", line.rule ? json(line.rule->text()) : json(nullptr)},
            {"would_compare", std::move(compared)},
            {"candidates", std::move(candidates)}};
}

}  // namespace wq::ctl
