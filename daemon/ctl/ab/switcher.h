// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>

#include "base/result.h"

namespace wq::ab {

// Switches between the arms of a comparison. What was there before is on disk before the first change, so
// that it can be put back by whoever finds it there.
class Switcher {
  public:
    Switcher() = default;
    Switcher(const Switcher&) = delete;
    Switcher& operator=(const Switcher&) = delete;
    virtual ~Switcher() = default;

    // Puts on disk what is to go back. Call it once, first.
    virtual Status begin() = 0;
    // Puts arm number ARM in place; acts also where it is in place: every run begins alike. Errors: the
    // change failed, or an external writer changed what the arms change.
    virtual Status to(std::size_t arm) = 0;
    // Looks for an external writer, without a change.
    virtual Status check() = 0;
};

}  // namespace wq::ab
