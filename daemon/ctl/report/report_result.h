// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/report/report_trial.h"
#include "plan/plan.h"

namespace wq::ctl {

// What the result is told from.
struct ResultInput {
    const std::vector<ReportTrial>& trials;  // oldest first
    const std::vector<PlanLine>& plan;       // for what the files hold now
    const nlohmann::json& status;            // the daemon's; null where none was asked
    std::string kernel;                      // release; empty where it is not known
};

// The section that a report begins with: what was improved and by how much, what was not, what is in force,
// and what remains to be done. Of several trials of a target with the same arms the last judged one counts.
std::string result_html(const ResultInput& input);

}  // namespace wq::ctl
