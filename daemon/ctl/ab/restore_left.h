// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/journal.h"
#include "ctl/ab/command_switcher.h"
#include "ctl/ab/left_store.h"
#include "ctl/ab/value_file.h"

namespace wq::ab {

// Restores what STORE has, and clears it. Restores a file only if its content may be ours, and checks it
// afterwards; the value of an external writer stays. SHELL runs the `undo` of an arm. Runs an undo that
// failed before only if AGAIN. Logs what cannot be restored and keeps it in STORE. Returns whether nothing is
// left.
bool restore_left(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again);

}  // namespace wq::ab
