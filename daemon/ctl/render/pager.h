// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

namespace wq::ctl {

// While it lives, what goes to stdout goes through a pager, as systemctl's does: $SYSTEMD_PAGER, else $PAGER,
// else `less`, which ends by itself where all of it fits on the terminal. None where stdout is no terminal,
// where it is not wanted, where the variable is "" or "cat", and where there is none to run. Those who ask
// for the terminal's columns and colours (terminal.h) are told what they were before.
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
