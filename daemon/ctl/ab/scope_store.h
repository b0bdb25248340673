// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "engine/baseline.h"
#include "kernel/paths.h"
#include "kernel/scope_files.h"

namespace wq::ab {

// baseline.json for a ScopeSwitcher of TARGET: loads STORE, and drops a setting of TARGET's that somebody has
// put back since, or whose workqueue is gone. Error: TARGET may hold a setting that wq-tuned left.
Status open_scope_store(BaselineStore& store, const ScopeFiles& files, const std::string& target);

// Puts back the scopes that comparisons left, by what is on disk: who dropped an entry wants nothing back.
// The entry of a workqueue that is gone is dropped. What cannot be put back is logged and stays. Returns
// whether nothing is left.
bool restore_scopes(const Paths& paths, Log& log);

}  // namespace wq::ab
