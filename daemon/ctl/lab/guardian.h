// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>
#include <functional>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "ctl/lab/left.h"

namespace wq::lab {

// A process that waits until this process ends in any way. It then kills the rest of the command that this
// process ran, and restores the settings. Only SIGKILL can end it earlier: it has its own session and blocks
// all signals.
class Guardian {
  public:
    // Forks. RESTORE runs in the guardian, with copies of the current state of this process, and returns
    // whether everything was restored.
    static Result<Guardian> start(const std::function<bool()>& restore);
    Guardian(Guardian&& other) noexcept;
    Guardian& operator=(Guardian&&) = delete;
    ~Guardian();  // same as finish()

    [[nodiscard]] pid_t pid() const { return pid_; }

    // Sets the process group that the guardian kills with us; 0 for none. Safe to call after fork(). If the
    // guardian was killed, this raises SIGPIPE.
    void watch(pid_t group) const;

    // Lets the guardian restore the settings and waits for it. Returns the result of RESTORE, or an error if
    // the guardian was killed.
    Result<bool> finish();

  private:
    Guardian(pid_t pid, Fd alive) : pid_(pid), alive_(std::move(alive)) {}
    pid_t pid_;
    Fd alive_;  // write end of a pipe; the kernel closes it at the latest when we end
};

// The work of `ab` or `bench`, from its first change of the machine to its last.
struct Guarded {
    std::string command;  // "ab" or "bench"
    std::function<Status()> work;
    std::string left;  // text of the error if something is left
};

// Does the work and then always puts back the machine of LAB: in the guardian, or in this process if the
// guardian was killed. Error: that of the work; if the work succeeded, WHAT.left if something is left.
Status run_guarded(const Lab& lab, const Guarded& what);

}  // namespace wq::lab
