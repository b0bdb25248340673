// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <signal.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "bpf/work_monitor.h"
#include "ctl/observe/top_rates.h"
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
    ~TopWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
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

// The terminal for `top`. The destructor restores it.
class TopScreen {
  public:
    // Error: the terminal cannot be used for a screen.
    static Result<std::unique_ptr<TopScreen>> open(const TopOptions& options);
    TopScreen(const TopScreen&) = delete;
    TopScreen& operator=(const TopScreen&) = delete;
    ~TopScreen();

    // Shows the next interval with the note LIMITS.
    void show(TopInterval interval, const std::string& limits);
    void note(const std::string& limits);  // replaces the note of the current interval
    void say(const std::string& words);    // shows WORDS before the first interval
    void resize();
    // Handles the pressed keys. False: quit.
    bool take_keys();

  private:
    explicit TopScreen(const TopOptions& options);
    void draw();
    void draw_table(const TopTable& table);
    void move_order(int by);
    void move_rows(int key);
    bool take_key(int key);

    bool has_functions_;
    bool functions_;            // shows functions instead of workqueues
    bool help_ = false;         // shows the help
    TopOrder orders_[2];        // order of workqueues, of functions
    std::size_t scrolled_ = 0;  // rows above the first visible one
    std::optional<TopInterval> interval_;
    std::string limits_;
};

// `wq-tunectl top`: shows the activity of workqueues per interval until it is stopped. On a terminal it
// shows a screen and reads keys; otherwise, or with --once, -n or --json, it prints text. A sample that
// fails temporarily (passes()) is skipped.
int top(const TopOptions& options, WorkMonitor& monitor);

// `top --replay`: shows a recording, the output of `top --json --functions`, instead of the kernel. A screen
// shows it at the speed of the recording.
int replay(const TopOptions& options);

}  // namespace wq::ctl
