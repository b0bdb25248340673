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

// Runs all steps of SCENARIO. The edge watches, except in steps of somebody else. AFTER, if given, is called
// after each step, while the edge rests.
void live(const Scenario& scenario, Host& host, const std::function<void(const Step&)>& after = {});

// True with WQ_TUNED_FAULTS=all (`./dev soak faults`): test everything, not only a part that takes seconds.
bool is_long();

// Each function returns what is wrong, one fault per line, or "". Call them while the edge rests.

// Each file must hold its baseline, a word that is ours according to owned.json on disk, or the word of an
// external writer. Then the state after a kill at this moment can be restored.
std::string wrong_on_disk(const Host& host);
// The daemon's status of each target must agree with its files. (Not checked if the daemon could not read
// owned.json: then it reports that, and writes nothing.)
std::string wrong_in_status(Host& host);
// After a restore: each file must hold its baseline, or the word of an external writer; no entry may be left;
// the verdicts can be read.
std::string wrong_at_the_end(const Host& host);

}  // namespace wq::faults
