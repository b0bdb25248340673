// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host.h"

namespace wq::faults {

// One thing that happens to a daemon. What somebody else does is done behind the edge.
struct Step {
    std::string name;
    std::function<void(Host&)> run;
    bool behind = false;
};

// A life of the daemon, from its start to its stop.
struct Scenario {
    std::string name;
    std::function<HostOptions()> options;
    std::vector<Step> steps;
};

// trials: a pin, a trial that is kept, one that is taken back, a restart of the unit in between.
// default: @default is tried and kept, and its followers with it.
// foreign: somebody else writes to what is pinned and to what is on trial.
// paused: settings without a trial, taken back and made again.
// unsupported: a kernel that stores `cache` for `cache_shard`.
const std::vector<Scenario>& scenarios();

}  // namespace wq::faults
