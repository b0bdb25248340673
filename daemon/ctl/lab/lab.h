// SPDX-License-Identifier: LGPL-2.1-or-later
// What `ab` and `bench` share.
#pragma once

#include <functional>
#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "ctl/lab/arms.h"
#include "ctl/lab/devices.h"
#include "ctl/lab/lab_files.h"
#include "ctl/lab/rounds.h"
#include "ctl/lab/runner.h"
#include "machine/paths.h"

namespace wq::lab {

// The machine of a run, and what it needs to put it back.
struct Lab {
    Paths paths;
    Processes& processes;
    Devices& devices;

    // Puts back what lab.json has, or, if SLOTS, the slots that a killed daemon left; logs and keeps what
    // could not be put back. Returns whether nothing is left.
    bool put_back(Log& log, bool slots = false) const;
};

// Takes the lock against the daemon and other runs, and puts back what earlier ones left, also slots of a
// daemon that was killed. Then, unless ONLY_RESTORE, returns the exit code of WORK; else whether nothing is
// left.
int in_lab(const Lab& lab, bool only_restore, const std::function<int()>& work);

// Does WORK of COMMAND ("ab" or "bench"), and then always puts back the machine: in the guardian, or in this
// process if the guardian was killed. Error: that of the work, else that something is left.
Status run_guarded(const Lab& lab, const std::string& command, const std::function<Status()>& work);

// Runs ROUNDS of SUBJECT, with progress on stderr. An error ends them; ROUNDS keeps the earlier measurements.
// STORE: lab.json.
Status compare(const Lab& lab, OwnedStore& store, const Subject& subject, Rounds& rounds, unsigned warm_ups,
               const std::function<Result<Figures>(std::size_t arm)>& measure);

}  // namespace wq::lab
