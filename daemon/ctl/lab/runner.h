// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "ctl/lab/guardian.h"

namespace wq::ab {

// While this object exists, next() reports the signals that would end a run (SIGINT, SIGTERM, SIGHUP,
// SIGQUIT, except ignored ones) instead of the default action. SIGTSTP from a terminal cannot stop a run,
// and SIGPIPE does not end it.
class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    // For commands that no signal may end: its next() returns no signal. The commands get the same signal
    // state as with *this, also in a child of this process.
    [[nodiscard]] Interrupts none() const { return {before_, pipe_before_}; }

    [[nodiscard]] int fd() const { return fd_.get(); }  // readable if a signal is pending
    [[nodiscard]] std::optional<int> next() const;      // returns a pending signal; does not wait
    [[nodiscard]] Status check() const;                 // error: EINTR if a signal was pending
    void undo() const;                                  // restores the signal state; safe after fork()

  private:
    Interrupts(const sigset_t& before, const struct sigaction& pipe_before)
        : before_(before), pipe_before_(pipe_before) {}

    sigset_t before_{};
    struct sigaction pipe_before_ {};
    Fd fd_;
};

inline constexpr std::size_t kMostOutput = 16U << 20U;  // bytes of a command's stdout

enum class Output { drop, show, capture, capture_and_show };

struct CommandRun {
    std::chrono::nanoseconds wall{};  // CLOCK_MONOTONIC, from before the fork to the exit
    std::string output;               // captured output
    std::string failure;              // "exit code 3", "killed by SIGSEGV"; "" for success
};

// Runs WORDS without a shell, found in PATH, with no input, in its own process group. If we end, the group
// is killed; GUARDIAN, if any, does this even if we are killed by SIGKILL. Shown output goes to stderr.
// Errors: the command cannot be run; more than kMostOutput bytes; EINTR if one of INTERRUPTS came, after the
// group was killed.
Result<CommandRun> run_command(const std::vector<std::string>& words, Output output,
                               const Interrupts& interrupts, const Guardian* guardian = nullptr);

}  // namespace wq::ab
