// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ctl/ab/switcher.h"
#include "engine/scope_writer.h"
#include "engine/step.h"
#include "model/kernel_info.h"
#include "model/workqueue.h"

namespace wq::ab {

// Writes the arms to one target. What it held is on disk before the first write, marked as a trial's, so that
// it goes back whoever finds it there: our guardian, wq-tuned-restore, the next daemon.
class ScopeSwitcher : public Switcher {
  public:
    // KERNEL has all ARMS. STORE is loaded, and nobody else writes to it meanwhile.
    ScopeSwitcher(ScopeFiles& files, BaselineStore& store, Workqueue target, std::vector<Arm> arms,
                  const KernelInfo& kernel);

    // Error: the store cannot be saved, or has this target already.
    Status begin() override;
    // Errors: what an external writer wrote meanwhile (it is left as found; of scope and strictness the one
    // that is still ours stays in the entry), a target that went, a kernel that stored something else, an
    // errno.
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
    std::vector<std::string> vias_;  // of @default, which ignores the word that it has; best first
    bool strict_ = false;            // whether the arms name it
    BaselineEntry entry_;            // as in the store, while it is there
};

}  // namespace wq::ab
