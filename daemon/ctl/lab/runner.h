// SPDX-License-Identifier: LGPL-2.1-or-later
// Commands as child processes, the signals that end a run, and the guardian that puts back what it changed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace wq::lab {

// While this object exists, check() reports the signals that would end a run (SIGINT, SIGTERM, SIGHUP,
// SIGQUIT, except ignored ones) instead of the default action. SIGTSTP from a terminal cannot stop a run,
// and SIGPIPE does not end it.
class Interrupts {
  public:
    Interrupts();
    ~Interrupts() { undo(true); }
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }  // readable if a signal is pending
    [[nodiscard]] Status check() const;                 // error: EINTR if a signal was pending
    // Restores the signal state; safe after fork(). DROP: pending signals have no effect.
    void undo(bool drop) const;

  private:
    sigset_t before_{};
    struct sigaction pipe_before_ {};
    Fd fd_;
};

// A process that waits until this process ends in any way. It then kills the rest of the command that this
// process ran, and restores the settings. Only SIGKILL can end it earlier: it has its own session and blocks
// all signals.
class Guardian {
  public:
    Guardian() = default;
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;
    ~Guardian() { (void)finish(); }

    // Forks. RESTORE runs in the guardian, with copies of the current state of this process, and returns
    // whether everything was restored.
    Status start(const std::function<bool()>& restore);
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Lets systemd move it into a scope unit of its own (wq-tunectl-COMMAND-PID.scope), so that it survives
    // if our whole cgroup is killed (a logout, `systemctl kill`, the OOM killer). Returns when it is there;
    // waits at most two seconds for the bus, and as long for systemd. If systemd is not the init system, does
    // nothing and returns no error.
    [[nodiscard]] Status into_own_scope(const std::string& command) const;
    // Sets the process group that the guardian kills with us; 0 for none. Does nothing if none was started.
    // Safe to call after fork(). If the guardian was killed, this raises SIGPIPE.
    void watch(pid_t group) const;
    // Lets the guardian restore the settings and waits for it. Returns the result of RESTORE, or an error if
    // the guardian was killed.
    Result<bool> finish();

  private:
    pid_t pid_ = -1;
    Fd alive_;  // write end of a pipe; the kernel closes it at the latest when we end
};

inline constexpr std::size_t kMostOutput = 16U << 20U;  // bytes of a command's output

// What happens to a command's stdout. `capture_all` also captures stderr, which is ours otherwise.
enum class Output { drop, capture, capture_all };

struct Ran {
    std::chrono::nanoseconds wall{};  // CLOCK_MONOTONIC, from before the fork to the exit
    std::string output;               // captured output
    std::string failure;              // "exit code 3", "killed by SIGSEGV"; "" for success
};

// Runs commands as child processes, without a shell, found in PATH, with no input, each in its own process
// group. If we end, the group is killed; the guardian does this even if we are killed by SIGKILL.
struct Processes {
    Interrupts interrupts;
    Guardian guardian;

    // Errors: the command cannot be run; more than kMostOutput bytes; EINTR if a signal came, after the group
    // was killed. TO_THE_END: signals do not end it.
    [[nodiscard]] Result<Ran> run(const std::vector<std::string>& words, Output output,
                                  bool to_the_end = false) const;
    // Also an error if the command fails; its text has the end of the output. SHOWN: the command in errors.
    [[nodiscard]] Status must_run(const std::vector<std::string>& words, const std::string& shown,
                                  bool to_the_end = false) const;
    // Runs COMMAND with /bin/sh.
    [[nodiscard]] Status shell(const std::string& command, bool to_the_end = false) const;
};

// The end of a command's OUTPUT in one line: ": a; b", or "".
std::string end_of_output(std::string output);

}  // namespace wq::lab
