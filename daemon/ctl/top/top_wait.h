// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <signal.h>

#include <chrono>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace wq::ctl {

// Waits for a time, a key, a reader, or a signal. While it lives, SIGINT, SIGTERM, SIGHUP and SIGWINCH only
// end a wait.
class TopWait {
  public:
    enum class Event { time, key, resized, quit };

    TopWait();
    ~TopWait();
    TopWait(const TopWait&) = delete;
    TopWait& operator=(const TopWait&) = delete;

    // Until the time DUE, or what comes first; keys only if asked for. An end of input is a wish to quit.
    Event until(std::chrono::steady_clock::time_point due, bool keys);

    // Writes TEXT to standard output. False: that took no more, and a signal asked to quit.
    Result<bool> write(std::string_view text);

  private:
    Event next_signal();

    sigset_t before_{};
    Fd signals_;
};

}  // namespace wq::ctl
