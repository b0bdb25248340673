// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <utility>

namespace wq {

// Tells when the work of a daemon is over for now: what was read for it can be dropped then. To drop it at
// every tick in between would only make it be read again.
class Quiet {
  public:
    // Something was done that ticks and looks for traffic do not do. The start counts.
    void worked() { busy_ = true; }
    // At each tick. True if nothing was done since the last one, and something before that.
    bool fell() {
        const bool quiet = !std::exchange(busy_, false);
        return std::exchange(was_busy_, !quiet) && quiet;
    }

  private:
    bool busy_ = true;      // since the last tick
    bool was_busy_ = true;  // before it
};

}  // namespace wq
