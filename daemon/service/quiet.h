// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <utility>

namespace wq {

// Detects when the daemon has finished its work for now. Pages that were read for the work can be dropped
// then. Dropping them at every tick would only cause them to be read again.
class Quiet {
  public:
    // Call it after work that is not part of a tick or of a look at the traffic. The start counts as work.
    void worked() { busy_ = true; }
    // Call it at each tick. Returns true if there was no work since the last tick, but there was in the
    // interval before it.
    bool fell() {
        const bool quiet = !std::exchange(busy_, false);
        return std::exchange(was_busy_, !quiet) && quiet;
    }

  private:
    bool busy_ = true;      // since the last tick
    bool was_busy_ = true;  // in the interval before it
};

}  // namespace wq
