// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/fd.h"

namespace wq::ab {

// A process that waits for this one to end, however it does, then ends what is left of the command that this
// one ran, and puts things back. Nothing but SIGKILL ends it before: it is in a session of its own, and
// blocks all signals.
class Guardian {
  public:
    // Forks. RESTORE runs in the guardian, with copies of all that this process has now; whether all is back.
    static Result<Guardian> start(const std::function<bool()>& restore);
    Guardian(Guardian&& other) noexcept;
    Guardian& operator=(Guardian&&) = delete;
    ~Guardian();  // as finish()

    [[nodiscard]] pid_t pid() const { return pid_; }

    // The process group that goes with us, 0 for none. Safe behind fork(). Where the guardian was killed:
    // SIGPIPE.
    void watch(pid_t group) const;

    // Lets it put things back, and waits for that. What RESTORE returned; an error where the guardian was
    // killed.
    Result<bool> finish();

  private:
    Guardian(pid_t pid, Fd alive) : pid_(pid), alive_(std::move(alive)) {}
    pid_t pid_;
    Fd alive_;  // the end of a pipe that the kernel closes for us at the latest
};

}  // namespace wq::ab
