// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "engine/baseline.h"
#include "kernel/paths.h"
#include "kernel/scope_files.h"

namespace wq::ab {

// Prepares STORE (baseline.json) for a ScopeSwitcher of TARGET: loads it, and drops the entry of TARGET if
// its setting is already restored or its workqueue is gone. Error: TARGET may hold a setting that wq-tuned
// left.
Status open_scope_store(BaselineStore& store, const ScopeFiles& files, const std::string& target);

// Restores the scopes that comparisons left. Reads the entries from disk, because an entry that was dropped
// needs no restore. Drops the entry of a workqueue that is gone. Logs and keeps what cannot be restored.
// Returns whether nothing is left.
bool restore_scopes(const Paths& paths, Log& log);

}  // namespace wq::ab
