// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "ctl/render/terminal.h"

namespace wq::ctl {

// Progress on stderr: one line per change. On a terminal that is not dumb, it rewrites one line and disables
// wrapping, because it could not erase the rows above the cursor.
class ProgressLine {
  public:
    void show(const std::string& text) {
        if (text == shown_) return;
        say(terminal_ ? "\r\033[K\033[?7l" + text + "\033[?7h" : text + "\n");
        std::fflush(stderr);
        shown_ = text;
    }
    void end() const {
        if (terminal_ && !shown_.empty()) say("\n");
    }

  private:
    bool terminal_ = ::isatty(STDERR_FILENO) == 1 && !terminal_is_dumb();
    std::string shown_;
};

}  // namespace wq::ctl
