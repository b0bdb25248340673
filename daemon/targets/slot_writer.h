// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "targets/engine.h"

namespace wq {

// Writes arms for a slot, with the same checks and saves as all other writes. Between enter() and leave() the
// engine leaves the slot's targets to the slot.
class SlotWriter {
  public:
    // ENGINE must outlive it.
    explicit SlotWriter(Engine& engine) : engine_(engine), targets_(engine.targets()) {}

    // Marks NAMES as in a slot, on disk: the restorer puts them back whatever is kept. A Status each.
    std::vector<Status> enter(const std::vector<std::string>& names);
    // Writes an arm for each target, in this order, even if it is in place already. Any outcome but `done`
    // ends the slot for that target alone. CLOCK: us.
    std::vector<Outcome> switch_to(const std::vector<std::pair<std::string, Arm>>& switches,
                                   const std::function<std::uint64_t()>& clock);
    // Returns NAMES to what policy and ledger decide. Ignores names that are no target.
    void leave(const std::vector<std::string>& names);

  private:
    Outcome may_switch(Target* target, const Arm& arm);

    Engine& engine_;
    Targets& targets_;
};

}  // namespace wq
