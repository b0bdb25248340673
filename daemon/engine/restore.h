// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/journal.h"
#include "engine/baseline.h"
#include "kernel/scope_files.h"

namespace wq {

// Puts every baseline of STORE back if the target holds something of ours, and removes each entry for which
// nothing is left to do. Entries that could not be restored stay in STORE and are logged with their errno.
// Returns their number. ONLY_SLOTS: keeps settings, and restores only @default and targets of a slot that was
// cut off.
unsigned restore_entries(ScopeFiles& files, BaselineStore& store, Log& log, bool only_slots = false);

}  // namespace wq
