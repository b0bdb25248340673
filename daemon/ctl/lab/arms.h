// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "targets/step.h"

namespace wq::ab {

// Parses "cache,smt,smt:strict": at least two arms, each once. If one is strict, the arms without ":strict"
// are not strict; else no arm changes strictness. Errors: EINVAL.
Result<std::vector<Arm>> parse_arms(std::string_view text);
// Returns the scope in place, then one scope of each other partition, coarsest first. LINE: the target's
// plan, with candidates. Errors: the target's pods are not known, or there is only one partition.
Result<std::vector<Arm>> arms_to_sweep(const PlanLine& line);
// The plan of TARGET by its CPUs alone. Ignores the policy, which is for the daemon.
PlanLine plan_by_cpus(const Topology& topology, const KernelInfo& kernel, Workqueue target);
// Why ARMS cannot be compared on LINE's target; "" if they can.
std::string why_not(const PlanLine& line, const std::vector<Arm>& arms, const KernelInfo& kernel);

}  // namespace wq::ab
