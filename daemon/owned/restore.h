// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/file.h"
#include "base/journal.h"
#include "machine/paths.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"

namespace wq {

// Puts every baseline of STORE back if the target holds something of ours, and removes each entry for which
// nothing is left to do. Entries that could not be restored stay in STORE and are logged with their errno.
// Returns their number. ONLY_SLOTS: keeps settings, and restores only @default and targets of a slot that was
// cut off.
unsigned restore_entries(ScopeFiles& files, BaselineStore& store, Log& log, bool only_slots = false);

// Takes the lock in the runtime directory, which is created if needed. Every process that writes scopes has
// it: the daemon, a restore, `wq-tunectl ab` or `bench`. It lasts until all copies of the descriptor are
// closed, also those of forked processes. Waits up to 2 s, because a restore may be about to end. Error:
// EWOULDBLOCK if another process has it for longer.
Result<Fd> take_lock(const Paths& paths);

}  // namespace wq
