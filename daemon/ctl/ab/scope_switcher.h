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

}  // namespace wq::ab
