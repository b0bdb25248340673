// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>
#include <vector>

#include "engine/step.h"
#include "plan/plan.h"

namespace wq::ab {

// "cache,smt,smt:strict": at least two, each once. Where one is strict the others are not; else strictness is
// left as it is. Errors: EINVAL.
Result<std::vector<Arm>> parse_arms(std::string_view text);
// The scope in place, and one of each partition that is another, coarsest first. LINE: the target's plan,
// with candidates. Errors: nothing is known of its pods, or there is only one partition.
Result<std::vector<Arm>> arms_to_sweep(const PlanLine& line);
// The plan of TARGET by its CPUs alone: what the policy has to say is for the daemon.
PlanLine plan_by_cpus(const Topology& topology, const KernelInfo& kernel, Workqueue target);
// Why LINE's target cannot be compared by ARMS; empty where it can.
std::string why_not(const PlanLine& line, const std::vector<Arm>& arms, const KernelInfo& kernel);

}  // namespace wq::ab
