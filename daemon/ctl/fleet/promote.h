// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "ctl/fleet/fleet_merge.h"

namespace wq {

// ENTRIES with keys that REDUCE made coarser; entries with equal keys are added up.
std::vector<FleetEntry> regrouped(const std::vector<FleetEntry>& entries, void (*reduce)(FleetKey& key));

// The rows of `fleet show`: pooled over topologies, schedulers, partitions, tolerances and windows.
std::vector<FleetEntry> shown_rows(const std::vector<FleetEntry>& entries);

// The result of a fleet for one class of targets, on machines that a policy's conditions cannot distinguish.
struct FleetRule {
    // The candidates are worse than the kernel's setting, and none is better. Else the candidate of the last
    // entry is better than the kernel's setting, or than an arm that a policy set.
    bool leave = false;
    // One entry per step from arm to arm; of `leave`, all that regressed. Machines have no packages, because
    // there is no condition for them; kernels are series.
    std::vector<FleetEntry> evidence;
    [[nodiscard]] const FleetKey& key() const { return evidence.back().key; }
};

// A sum that makes no rule, and why: "7 of 40 hosts are worse by latency".
struct FleetDoubt {
    FleetEntry evidence;
    std::string why;
};

struct FleetRules {
    std::vector<FleetRule> rules;
    std::vector<FleetDoubt> doubts;  // sums that pass e-BH, but have a veto
    std::size_t hypotheses = 0;
};

// The rules that pass e-BH at RATE (0..1). ctl/fleet/promote.cpp explains it.
FleetRules promoted(const std::vector<FleetEntry>& entries, double rate);

// e-BH (Wang and Ramdas, "False discovery rate control with e-values", 2022): which of the m hypotheses whose
// ln e-values are LOGS are rejected, on average at most the share RATE (0..1) of them wrongly. The k largest
// e-values are rejected, for the largest k for which the k-th largest is at least m / (RATE k).
std::vector<bool> e_bh(const std::vector<double>& logs, double rate);

}  // namespace wq
