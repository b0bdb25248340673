// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "evidence/fleet_merge.h"

namespace wq {

// ENTRIES with keys made coarser by REDUCE, those of equal keys added up.
std::vector<FleetEntry> regrouped(const std::vector<FleetEntry>& entries, void (*reduce)(FleetKey& key));

// The rows of `fleet show`: pooled over topologies, schedulers, partitions, tolerances and windows.
std::vector<FleetEntry> shown_rows(const std::vector<FleetEntry>& entries);

// What a fleet found out of one class of targets on machines that a policy's conditions cannot tell apart.
struct FleetRule {
    enum class Kind {
        use,    // ARM is better than what the kernel does
        leave,  // what was compared with the kernel's setting is worse
    };
    Kind kind = Kind::leave;
    FleetMachine machine;  // packages are empty: there is no condition for them
    std::string series;    // of the kernel
    std::string target;    // class of targets
    std::string arm;       // of `use`: by name
    bool strict = false;   // of `use`
    // What it rests on: of `use`, a step from arm to arm each; of `leave`, all that regressed.
    std::vector<FleetEntry> evidence;
};

// What would be a rule if nothing spoke against it.
struct FleetDoubt {
    FleetEntry evidence;  // that passes
    std::string why;      // "7 of 40 hosts are worse by latency"
};

struct FleetRules {
    std::vector<FleetRule> rules;
    std::vector<FleetDoubt> doubts;
    // Sums of which it is not known what single hosts found: whether one host makes the rule, and whether
    // many are worse. They make no rule, and their counters veto the candidate.
    std::vector<FleetEntry> unclear;
    std::size_t hypotheses = 0;
};

// The rules that pass e-BH at RATE (0..1). evidence/promote.cpp explains it.
FleetRules promoted(const std::vector<FleetEntry>& entries, double rate);

}  // namespace wq
