// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/experiment_plan.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "engine/candidates.h"

namespace wq::ctl {
namespace {

// Why nothing is compared on the target of LINE; "" if something may be.
std::string why_none(const Machine& machine, const PlanLine& line) {
    if (line.finding != Finding::change && line.finding != Finding::in_place) return line.reason;
    if (machine.policy.mode == Mode::observe) return "mode observe writes nothing";
    if (line.finding == Finding::change || searches(line.target, machine.policy)) return "";
    if (machine.policy.mode == Mode::guard) return "mode guard compares only a plan that changes something";
    return "the scope that the rule names is in place";
}

TargetExperiments experiments_on(const Machine& machine, const PlanLine& line) {
    TargetExperiments out{line.target.name, "", {}, why_none(machine, line)};
    if (!out.reason.empty()) return out;
    out.reference = baseline_arm(line.target, line).name();
    const StepInput input{line.target, line, machine.policy, machine.shard_size, {}, {}, {}, 0};
    for (const Arm& arm : candidates_of(input)) out.candidates.push_back(arm.name());
    if (out.candidates.empty()) out.reason = "no finer scope makes other pools";
    return out;
}

}  // namespace

// A pair takes the second window's arm for a washout, two windows, and a drain as long as a washout
// (engine/slot.h). Slots are shared; @default has its own.
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines) {
    const Judging& judge = machine.policy.judge;
    ExperimentPlan out;
    out.slot_seconds = 2 * std::chrono::duration<double>(judge.window + judge.washout).count();
    std::size_t all = 0;
    std::size_t most = 0;
    std::size_t alone = 0;
    for (const PlanLine& line : lines) {
        out.targets.push_back(experiments_on(machine, line));
        const std::size_t n = out.targets.back().candidates.size();
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

nlohmann::json experiments_json(const Machine& machine, const ExperimentPlan& plan,
                                const TargetExperiments& target) {
    const auto pairs = machine.policy.judge.settings.max_pairs;
    return {
        {"name", target.name},
        {"reference", target.reference.empty() ? nlohmann::json(nullptr) : nlohmann::json(target.reference)},
        {"candidates", target.candidates},
        {"pairs", pairs * target.candidates.size()},
        {"seconds", static_cast<double>(pairs * target.candidates.size()) * plan.slot_seconds},
        {"reason", target.reason}};
}

}  // namespace wq::ctl
