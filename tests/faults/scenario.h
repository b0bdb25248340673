// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host.h"

namespace wq::faults {

// One event in the life of a daemon. `behind`: it is done by somebody else, and the edge does not watch it.
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

// trials: a pin, a trial that is kept, a restart of the unit, a trial that is taken back.
// default: @default is tried and kept, and its followers with it.
// foreign: an external writer writes to a pinned target and to one on trial.
// paused: settings without a trial, restored by a pause and applied again.
// unsupported: a kernel that stores `cache` for `cache_shard`.
const std::vector<Scenario>& scenarios();

}  // namespace wq::faults
