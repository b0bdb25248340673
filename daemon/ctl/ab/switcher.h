// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "model/kernel_info.h"
#include "model/workqueue.h"
#include "tuner/apply.h"
#include "tuner/step.h"

namespace wq::ab {

// Writes the arms to one target. What it held is on disk before the first write, marked as a trial's, so that
// it goes back whoever finds it there: our guardian, wq-tuned-restore, the next daemon.
class Switcher {
  public:
    // KERNEL has all ARMS. STORE is loaded, and nobody else writes to it meanwhile.
    Switcher(ScopeFiles& files, BaselineStore& store, Workqueue target, const std::vector<Arm>& arms,
             const KernelInfo& kernel);

    // Puts the baseline on disk. Error: the store cannot be saved, or has this target already.
    Status begin();
    // Makes the target hold ARM, by a write also where it does already: every window begins with one. Errors:
    // what an external writer wrote meanwhile (it is left as found; of scope and strictness the one that is
    // still ours stays in the entry), a target that went, a kernel that stored something else, an errno.
    Status to(const Arm& arm);
    // The same look for what an external writer wrote, without a write.
    Status check();

  private:
    Status foreign(const std::string& what);
    Status failed(const Outcome& outcome, const Arm& arm);
    [[nodiscard]] std::string word_between(const std::string& to) const;

    ScopeFiles& files_;
    BaselineStore& store_;
    Workqueue target_;
    std::vector<std::string> vias_;  // of @default, which ignores the word that it has; best first
    bool strict_ = false;            // whether the arms name it
    BaselineEntry entry_;            // as in the store, while it is there
};

}  // namespace wq::ab
