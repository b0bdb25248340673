// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace wq::lab {

class Guardian;

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

inline constexpr std::size_t kMostOutput = 16U << 20U;  // bytes of a command's output

// What happens to a command's stdout. `capture_all` also captures stderr, which others show.
enum class Output { drop, show, capture, capture_and_show, capture_all };

struct Ran {
    std::chrono::nanoseconds wall{};  // CLOCK_MONOTONIC, from before the fork to the exit
    std::string output;               // captured output
    std::string failure;              // "exit code 3", "killed by SIGSEGV"; "" for success
};

// Runs commands as child processes, without a shell, found in PATH, with no input, each in its own process
// group. If we end, the group is killed; the guardian does this even if we are killed by SIGKILL. Shown
// output goes to stderr.
struct Processes {
    Interrupts interrupts;
    const Guardian* guardian = nullptr;  // while it runs

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
