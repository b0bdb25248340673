// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace wq::ctl {

// "default (cache)", "smt, strict": what a target's files hold; "" where it has none.
std::string scope_text(const Workqueue& target);

// The targets of the daemon's STATUS by name; none where STATUS is null. For as long as STATUS lives.
std::map<std::string, const nlohmann::json*> targets_of(const nlohmann::json& status);
// A word of such a target; "-" where it has none.
std::string word_of(const nlohmann::json& target, const char* key);

// NAMES as HTML: the first few, and the others folded.
std::string names_html(const std::vector<std::string>& names);

// The section of a report with what is planned: a row per group of targets that differ in their names alone.
// STATUS is the daemon's, with its states and baselines; null where none was asked.
std::string plan_html(const std::vector<PlanLine>& plan, const nlohmann::json& status);

}  // namespace wq::ctl
