// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

namespace wq::ctl {

// Lets polkit ask the user of this program for a password: runs pkttyagent(1) on the terminal while this
// object exists, like systemctl(1). Does nothing for root, who is not asked, without a terminal, or without
// pkttyagent. A desktop's own agent has priority.
class PasswordAgent {
  public:
    PasswordAgent();
    ~PasswordAgent();
    PasswordAgent(const PasswordAgent&) = delete;
    PasswordAgent& operator=(const PasswordAgent&) = delete;

  private:
    pid_t pid_ = 0;  // 0: not running
};

}  // namespace wq::ctl
