// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "engine/experiment.h"
#include "evidence/fleet_line.h"
#include "judge/verdicts.h"
#include "service/isolated_items.h"

namespace wq {

// The policy in use, for those who compare hosts.
struct PolicyFacts {
    std::string hash;         // policy_hash(); "" where none could be read yet
    std::string sources;      // sources_hash(); likewise
    std::size_t files = 0;    // it came of
    bool broken = false;      // what is on disk now, whatever is in use
    std::size_t expired = 0;  // rules
};

struct MetricsInput {
    const Engine& engine;
    const Experiment& experiment;
    const VerdictStore& verdicts;
    std::string state;  // running, paused (by a kill switch or an order) or observing
    PolicyFacts policy;
    FleetMachine machine;
    std::int64_t started = 0;  // s since 1970
    const IsolatedItems& isolated;
};

// Series that there may be of single targets, of verdicts and of work on isolated CPUs, and comparisons whose
// evidence is told, so that a host with thousands of workqueues is no burden to a fleet's monitoring. A
// comparison has 14 series for each counter and guard.
inline constexpr std::size_t kMostTargetSeries = 200;
inline constexpr std::size_t kMostVerdictSeries = 100;
inline constexpr std::size_t kMostComparisons = 25;
inline constexpr std::size_t kMostIsolatedSeries = 100;

// Pure: all that wq-tuned counts, in the text format of Prometheus (version 0.0.4). Names that are not UTF-8
// have replacement characters. What each metric means is in wq-tuned(8), and a test compares the two.
std::string metrics_text(const MetricsInput& input);

}  // namespace wq
