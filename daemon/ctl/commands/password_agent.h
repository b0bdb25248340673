// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

namespace wq::ctl {

// Where polkit can ask whoever runs this program for a password: pkttyagent(1) on the terminal, for as long
// as this object lives, as systemctl(1) has it. None for root, who is not asked, without a terminal, and
// where there is no pkttyagent; a desktop's own agent goes before it.
class PasswordAgent {
  public:
    PasswordAgent();
    ~PasswordAgent();
    PasswordAgent(const PasswordAgent&) = delete;
    PasswordAgent& operator=(const PasswordAgent&) = delete;

  private:
    pid_t pid_ = 0;  // 0: none runs
};

}  // namespace wq::ctl
