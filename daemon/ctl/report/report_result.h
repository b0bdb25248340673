// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/report/report_trial.h"
#include "plan/plan.h"

namespace wq::ctl {

// Input for the result section.
struct ResultInput {
    const std::vector<ReportedComparison>& trials;  // oldest first
    const std::vector<PlanLine>& plan;              // for the current scopes
    const nlohmann::json& status;                   // the daemon's; null if no daemon was asked
    std::string kernel;                             // release; empty if not known
};

// The first section of a report: what was improved and by how much, what was not, what is in force, and what
// remains to be done. Of several comparisons of a target with the same arms, the last judged one counts.
std::string result_html(const ResultInput& input);

}  // namespace wq::ctl
