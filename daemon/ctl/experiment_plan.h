// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/machine.h"
#include "engine/step.h"

namespace wq::ctl {

// What would be compared on one target, as long as nothing is known.
struct TargetExperiments {
    std::string name;
    std::string reference;                // the arm that is in force now
    std::vector<std::string> candidates;  // arms, in the order in which they meet it
    std::string reason;                   // why there are none; "" if there are
};

// The experiments that MACHINE's policy asks for, without a daemon.
struct ExperimentPlan {
    std::vector<TargetExperiments> targets;  // one for each of LINES, in their order
    double slot_seconds = 0;                 // that a pair takes
    double most_seconds = 0;  // until all comparisons are decided or sparse, if all targets are busy at once
};
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines);

// The pairs and seconds that a comparison of TARGET takes at most before it is sparse, and its arms.
nlohmann::json experiments_json(const Machine& machine, const ExperimentPlan& plan,
                                const TargetExperiments& target);

}  // namespace wq::ctl
