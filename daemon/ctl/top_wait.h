// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <signal.h>

#include <chrono>

#include "kernel/fd.h"

namespace wq::ctl {

// Waits for a time, a key, or a signal. While it lives, SIGINT, SIGTERM, SIGHUP and SIGWINCH only end a wait.
class TopWait {
  public:
    enum class Event { time, key, resized, quit };

    TopWait();
    ~TopWait();
    TopWait(const TopWait&) = delete;
    TopWait& operator=(const TopWait&) = delete;

    // Until the time DUE, or what comes first; keys only if asked for. An end of input is a wish to quit.
    Event until(std::chrono::steady_clock::time_point due, bool keys);

  private:
    sigset_t before_{};
    Fd signals_;
};

}  // namespace wq::ctl
