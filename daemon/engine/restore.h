// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/journal.h"
#include "engine/baseline.h"
#include "kernel/scope_files.h"

namespace wq {

// Puts every baseline of STORE back where what the target holds is ours, and removes each entry that is
// settled so. What could not be restored stays in STORE and is logged with its errno. Returns how many
// stayed. ONLY_TRIALS: settings are kept, but for what a trial that was cut off had in place.
unsigned restore_entries(ScopeFiles& files, BaselineStore& store, Log& log, bool only_trials = false);

}  // namespace wq
