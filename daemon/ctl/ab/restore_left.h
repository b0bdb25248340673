// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/journal.h"
#include "ctl/ab/command_switcher.h"
#include "ctl/ab/left_store.h"
#include "ctl/ab/value_file.h"

namespace wq::ab {

// Puts back what STORE has, and clears it. A file goes back if what it has may be ours, and is checked
// afterwards; what an external writer wrote is left. SHELL runs the `undo` of an arm. An undo that failed
// runs again only if AGAIN. What could not be put back is logged, and stays in STORE. Returns whether nothing
// is left.
bool restore_left(ValueFiles& files, const LeftStore& store, const Shell& shell, Log& log, bool again);

}  // namespace wq::ab
