// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>

#include "evidence/verdicts.h"
#include "experiment/experiment.h"
#include "machine/host_facts.h"
#include "service/health.h"
#include "targets/orders.h"

namespace wq {

// The policy in use, for comparing hosts.
struct PolicyFacts {
    std::string hash;         // policy_hash(); "" if no policy could be read yet
    std::string sources;      // sources_hash(); likewise
    std::size_t files = 0;    // number of its files
    bool broken = false;      // the policy on disk is broken; another one may be in use
    std::size_t expired = 0;  // number of expired rules
};

struct MetricsInput {
    const Engine& engine;
    const Orders& orders;
    const Experiment& experiment;
    const VerdictStore& verdicts;
    std::string state;  // running, paused (by a kill switch or an order) or observing
    PolicyFacts policy;
    FleetMachine machine;
    std::int64_t started = 0;  // s since 1970
    const Health& health;
};

// They protect a fleet's monitoring from hosts with thousands of workqueues. A comparison has 16 series for
// each counter and guard.
inline constexpr std::size_t kMostTargetSeries = 200;
inline constexpr std::size_t kMostVerdictSeries = 100;
inline constexpr std::size_t kMostComparisons = 25;

// All counts of wq-tuned in the text format of Prometheus (version 0.0.4). Names that are not UTF-8 get
// replacement characters. wq-tuned(8) describes each metric; a test compares the two.
std::string metrics_text(const MetricsInput& input);

}  // namespace wq
