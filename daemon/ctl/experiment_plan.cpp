// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/experiment_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ctl/json_values.h"
#include "engine/candidates.h"
#include "kernel/read_swap.h"

namespace wq::ctl {
namespace {

// Why nothing is compared on the target of LINE; "" if something may be.
std::string why_none(const Machine& machine, const PlanLine& line) {
    if (line.finding != Finding::change && line.finding != Finding::in_place) return line.reason;
    if (machine.policy.mode == Mode::observe) return "mode observe writes nothing";
    if (line.finding == Finding::in_place && !searches(line.target, machine.policy))
        return machine.policy.mode == Mode::guard ? "mode guard compares only a plan that changes something"
                                                  : "the scope that the rule names is in place";
    return machine.named_only.why(machine.policy, line.target.kind, line.target.name);
}

// The maximum number of comparisons for CANDIDATES, which are compared with the reference in this order. An
// undecided candidate is also compared with a later one that improved, if it is finer than that one or is the
// plan (engine/candidates.h).
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

TargetExperiments experiments_on(const Machine& machine, const PlanLine& line) {
    TargetExperiments out{line.target.name, "", {}, 0, why_none(machine, line)};
    if (!out.reason.empty()) return out;
    out.reference = baseline_arm(line.target, line).name();
    const StepInput input{line.target, line, machine.policy, machine.shard_size, {}, {}, {}, 0};
    const std::vector<Arm> candidates = candidates_of(input);
    for (const Arm& arm : candidates) out.candidates.push_back(arm.name());
    out.comparisons = most_comparisons(line, candidates);
    if (out.candidates.empty()) out.reason = "no finer scope makes other pools";
    return out;
}

}  // namespace

// A slot with a pair has a lead as long as a washout, two windows, and a drain as long as a washout
// (engine/slot.h). Targets share slots; @default has slots of its own.
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines) {
    const Judging& judge = machine.policy.judge;
    ExperimentPlan out;
    out.slot_seconds = 2 * std::chrono::duration<double>(judge.window + judge.washout).count();
    std::size_t all = 0;
    std::size_t most = 0;
    std::size_t alone = 0;
    for (const PlanLine& line : lines) {
        out.targets.push_back(experiments_on(machine, line));
        if (serves_swap(line.target.name, machine.named_only.swap))
            out.serve_swap.push_back(line.target.name);
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

std::vector<std::string> named_only_remarks(const Machine& machine, const ExperimentPlan& plan) {
    std::vector<std::string> out;
    if (const std::string& host = machine.named_only.host; !host.empty())
        out.push_back(host + ": only targets that a rule names are compared.");
    if (!plan.serve_swap.empty())
        out.push_back(fmt::format("Targets that serve swap are compared only if a rule names them: {}.",
                                  fmt::join(plan.serve_swap, ", ")));
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

}  // namespace wq::ctl
