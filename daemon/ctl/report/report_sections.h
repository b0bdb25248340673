// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ctl/report/report_plot.h"
#include "evidence/verdicts.h"
#include "machine/isolation.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "plan/plan.h"

namespace wq::ctl {

// The sections of a report as HTML. STATUS is the daemon's, with states and baselines; null if no daemon was
// asked. TRIALS are comparisons, oldest first, as in the store.

// Input for the result section.
struct ResultInput {
    const std::vector<VerdictRecord>& trials;
    const std::vector<PlanLine>& plan;  // for the current scopes
    const nlohmann::json& status;
    std::string kernel;  // kernel_key(); empty if not known
};
// What was improved and by how much, what was not, what is in force, and what remains to be done. Of several
// comparisons of a target with the same arms, the last judged one counts.
std::string result_html(const ResultInput& input);

// One row per group of targets that differ only in their names.
std::string plan_html(const std::vector<PlanLine>& plan, const nlohmann::json& status);

// The plots of TRIALS, and the table of all TRIALS. Both show the latest first and fold all but the last
// few. history_html() returns "" if there are none.
std::string trials_html(const std::vector<VerdictRecord>& trials);
std::string history_html(const std::vector<VerdictRecord>& trials);
// The verdict as a word with its mark and colour.
std::string verdict_html(const VerdictRecord& record);
// The evidence of a counter after each of its DIFFERENCES, as the judge computed it from them.
RunningEvidence running_evidence(const std::vector<double>& differences, double tolerance);

// Input for the drawing of a machine.
struct DrawnMachine {
    const Topology& topology;
    const KernelInfo& kernel;  // its own pods are listed beside the drawing
    unsigned shard_size = 8;   // cores
    const Isolation& isolation;
    CoreKinds kinds = {};
};
// Packages, LLCs, shards, cores, threads. Every core of the topology is one element with the attribute
// data-core, whose value is its lowest CPU. Packages that share an LLC are in one box. The cores of a hybrid
// are drawn and named by their kinds. With more than 64 CPUs the drawing is folded.
std::string machine_html(const DrawnMachine& machine);

}  // namespace wq::ctl
