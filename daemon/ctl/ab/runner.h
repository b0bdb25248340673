// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ctl/ab/guardian.h"

namespace wq::ab {

// While it lives, the signals that end a run (SIGINT, SIGTERM, SIGHUP, SIGQUIT, but those that were ignored)
// are told by next() instead of being acted on, a terminal cannot stop us in the middle of one (SIGTSTP), and
// nobody who stops listening ends it (SIGPIPE).
class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }  // readable while there is one
    [[nodiscard]] std::optional<int> next() const;      // a signal that came; does not wait
    void undo() const;                                  // all signals as they were before; safe behind fork()

  private:
    sigset_t before_{};
    struct sigaction pipe_before_ {};
    Fd fd_;
};

inline constexpr std::size_t kMostOutput = 16U << 20U;  // bytes of a command's stdout

enum class Output { drop, show, capture, capture_and_show };

struct CommandRun {
    std::chrono::nanoseconds wall{};  // of CLOCK_MONOTONIC, from before the fork to the exit
    std::string output;               // what was captured
    std::string failure;              // "exit code 3", "killed by SIGSEGV"; "" where it succeeded
};

// Runs WORDS as they are, found by PATH, without a shell, with no input, in a process group of its own, which
// is ended with us: by GUARDIAN, if any, where we are killed without a word. What is shown goes to stderr.
// Errors: it cannot be run; more than kMostOutput bytes; EINTR where one of INTERRUPTS came, the command's
// group being ended then.
Result<CommandRun> run_command(const std::vector<std::string>& words, Output output,
                               const Interrupts& interrupts, const Guardian* guardian = nullptr);

}  // namespace wq::ab
