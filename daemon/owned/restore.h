// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/file.h"
#include "base/journal.h"
#include "machine/paths.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "owned/writer.h"

namespace wq {

// Puts every baseline of STORE back if the file holds something of ours, and removes each entry for which
// nothing is left to do. Entries that could not be restored stay in STORE and are logged with their errno.
// Returns their number. ONLY_SLOTS: keeps settings, and restores only @default and targets of a slot that was
// cut off.
//
// The order: our strictness off; @default; masks (of workqueues, then of all); scopes; a strictness of the
// kernel on. So no scope is strict without need, and no follower of @default moves twice.
unsigned restore_all(WorkqueueFiles& files, OwnedStore& store, Log& log, bool only_slots = false);

// How the journal names a setting, a baseline that was put back, and an external writer.
struct FileWords {
    const char* label;  // "cpumask "; "" for a scope
    Event set;
    Event restored;
    Event external;
    const char* old_field;
    const char* new_field;
    const char* back;  // "back to"
};
const FileWords& words_of(const Owned& entry);
// "; isolated CPUs 2-3 may get unbound work ...": what putting the mask of ENTRY back lets in; "" if nothing.
std::string let_in(const WorkqueueFiles& files, const Owned& entry);

// Takes the lock in the runtime directory, which is created if needed. Every process that writes scopes has
// it: the daemon, a restore, `wq-tunectl ab` or `bench`. It lasts until all copies of the descriptor are
// closed, also those of forked processes. Waits up to 2 s, because a restore may be about to end. Error:
// EWOULDBLOCK if another process has it for longer.
Result<Fd> take_lock(const Paths& paths);

}  // namespace wq
