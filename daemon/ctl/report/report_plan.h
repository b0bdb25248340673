// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace wq::ctl {

// The section of a report with a row per target. STATUS is the daemon's, with its states and baselines; null
// where none was asked.
std::string plan_html(const std::vector<PlanLine>& plan, const nlohmann::json& status);

}  // namespace wq::ctl
