// SPDX-License-Identifier: LGPL-2.1-or-later
// What one command takes from another.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/machine.h"
#include "ctl/render/page.h"
#include "evidence/verdicts.h"

namespace wq::ctl {

// The comparisons on one target, as long as the ledger is empty.
struct TargetExperiments {
    std::string name;
    std::string reference;                // the arm that is in force now
    std::vector<std::string> candidates;  // arms, in the order in which they are compared with it
    std::size_t comparisons = 0;          // at most, including undecided ones against later winners
    std::size_t pairs = 0;                // of all comparisons, at most, before they are sparse
    std::string reason;                   // why there are no candidates; "" if there are
};

// The experiments that MACHINE's policy asks for, without a daemon.
struct ExperimentPlan {
    std::vector<TargetExperiments> targets;  // one for each of LINES, in their order
    double slot_seconds = 0;                 // of one pair
    // Until all comparisons are decided or sparse, if all targets are busy and no pair is dropped.
    double most_seconds = 0;
};
ExperimentPlan experiments_of(const Machine& machine, const std::vector<PlanLine>& lines);

// LINE in the format of `plan --json`.
nlohmann::json plan_json(const Machine& machine, const PlanLine& line);
// TARGET in the format of `plan --experiments --json`; pairs of SLOT_SECONDS.
nlohmann::json experiments_json(const TargetExperiments& target, double slot_seconds);

// The setting in a target's files, as the kernel prints it: "default (cache)"; "-" if it has none.
std::string scope_text(const ScopeFile& scope);
// "smt", "smt strict"; "-" if nothing is planned.
std::string planned_text(const PlanLine& line);

// What `status`, `plan` and `history` show. MACHINE: what OPTIONS name; LINES: its plan.
Shown status_shown(const Options& options);
Shown plan_shown(const Options& options, const Machine& machine, const std::vector<PlanLine>& lines);
Shown history_shown(const std::vector<VerdictRecord>& records, const std::string& target = "");

}  // namespace wq::ctl
