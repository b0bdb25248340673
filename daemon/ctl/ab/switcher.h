// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>

#include "base/result.h"

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

}  // namespace wq::ab
