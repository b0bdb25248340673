// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "kernel/fd.h"

namespace wq::ab {

// While it lives, the signals that end a run (SIGINT, SIGTERM, SIGHUP, SIGQUIT, but those that were ignored)
// are told by next() instead of being acted on, and a terminal cannot stop us in the middle of one (SIGTSTP).
class Interrupts {
  public:
    Interrupts();
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }  // readable while there is one
    [[nodiscard]] std::optional<int> next() const;      // a signal that came; does not wait
    [[nodiscard]] const sigset_t& before() const { return before_; }

  private:
    sigset_t before_{};
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
// is ended with us. What is shown goes to stderr. Errors: it cannot be run; more than kMostOutput bytes;
// EINTR where one of INTERRUPTS came, the command's group being ended then.
Result<CommandRun> run_command(const std::vector<std::string>& words, Output output,
                               const Interrupts& interrupts);

}  // namespace wq::ab
