// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

namespace wq::ctl {

// While this object exists, stdout goes through a pager, like in systemctl: $SYSTEMD_PAGER, else $PAGER,
// else `less`, which exits at once if the output fits on the terminal. There is no pager if stdout is not a
// terminal or is a dumb one, if none is wanted, if the variable is "" or "cat", or if no pager can be run.
// The functions for the terminal's columns and colours (terminal.h) keep their previous results.
class Pager {
  public:
    explicit Pager(bool wanted);
    ~Pager();
    Pager(const Pager&) = delete;
    Pager& operator=(const Pager&) = delete;

  private:
    pid_t pid_ = -1;
};

}  // namespace wq::ctl
