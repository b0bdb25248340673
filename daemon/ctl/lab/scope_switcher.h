// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/journal.h"
#include "base/result.h"
#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "machine/workqueue.h"
#include "machine/workqueue_fs.h"
#include "owned/baseline.h"
#include "owned/scope_writer.h"
#include "targets/step.h"

namespace wq::ab {

// Switches between the arms of a comparison. The original state is saved to disk before the first change, so
// that any process that finds it there can restore it.
class Switcher {
  public:
    Switcher() = default;
    Switcher(const Switcher&) = delete;
    Switcher& operator=(const Switcher&) = delete;
    virtual ~Switcher() = default;

    // Saves the original state to disk. Call it once, before the other functions.
    virtual Status begin() = 0;
    // Switches to arm number ARM. Writes even if it is already in place, so that all runs start the same way.
    // Errors: the change failed, or an external writer changed what the arms change.
    virtual Status to(std::size_t arm) = 0;
    // Checks for an external writer. Does not switch.
    virtual Status check() = 0;
};

// Writes the arms to one target. Its original setting is saved to disk before the first write and marked as a
// slot's, so that our guardian, wq-tuned-restore or the next daemon can restore it.
class ScopeSwitcher : public Switcher {
  public:
    // KERNEL must have the scopes of all ARMS. STORE must be loaded, and nobody else may write to it.
    ScopeSwitcher(ScopeFiles& files, BaselineStore& store, Workqueue target, std::vector<Arm> arms,
                  const KernelInfo& kernel);

    // Error: the store cannot be saved, or has this target already.
    Status begin() override;
    // Errors: an external writer wrote the scope or the strictness (its value stays; if the other one is
    // still ours, the entry keeps it); the target vanished; the kernel stored another scope; errno.
    Status to(std::size_t arm) override;
    Status check() override;

  private:
    Status foreign(const std::string& what);
    Status failed(const Outcome& outcome, const Arm& arm);
    [[nodiscard]] std::string word_between(const std::string& to) const;

    ScopeFiles& files_;
    BaselineStore& store_;
    ScopeWriter writer_;
    Workqueue target_;
    std::vector<Arm> arms_;
    std::vector<std::string> vias_;  // of @default, which ignores a write of its current word; best first
    bool strict_ = false;            // whether the arms set strictness
    BaselineEntry entry_;            // as in the store, if the store has it
};

// Prepares STORE (baseline.json) for a ScopeSwitcher of TARGET: loads it, and drops the entry of TARGET if
// its setting is already restored or its workqueue is gone. Error: TARGET may hold a setting that wq-tuned
// left.
Status open_scope_store(BaselineStore& store, const ScopeFiles& files, const std::string& target);

// Restores the scopes that comparisons left. Reads the entries from disk, because an entry that was dropped
// needs no restore. Drops the entry of a workqueue that is gone. Logs and keeps what cannot be restored.
// Returns whether nothing is left.
bool restore_scopes(const Paths& paths, Log& log);

}  // namespace wq::ab
