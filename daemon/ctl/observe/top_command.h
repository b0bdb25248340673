// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <signal.h>

#include <chrono>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "bpf/work_monitor.h"
#include "ctl/observe/top_table.h"

namespace wq::ctl {

inline std::chrono::steady_clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds));
}

// Waits for a time, a key, writable output, or a signal. While this object exists, SIGINT, SIGTERM, SIGHUP
// and SIGWINCH only end a wait.
class TopWait {
  public:
    enum class Event { time, key, resized, quit };

    TopWait();
    ~TopWait();
    TopWait(const TopWait&) = delete;
    TopWait& operator=(const TopWait&) = delete;

    // Waits until DUE or an earlier event. Waits for keys only if KEYS. The end of the input counts as a
    // request to quit.
    Event until(std::chrono::steady_clock::time_point due, bool keys);

    // Writes TEXT to standard output. False: it was blocked, and a signal requested to quit.
    Result<bool> write(std::string_view text);

  private:
    Event next_signal();

    sigset_t before_{};
    Fd signals_;
};

// `wq-tunectl top`: shows the activity of workqueues per interval until it is stopped. On a terminal it
// shows a screen and reads keys; otherwise, or with --once, -n or --json, it prints text. A sample that
// fails temporarily (passes()) is skipped.
int top(const TopOptions& options, WorkMonitor& monitor);

// `top --replay`: shows a recording, the output of `top --json --functions`, instead of the kernel. A screen
// shows it at the speed of the recording.
int replay(const TopOptions& options);

}  // namespace wq::ctl
