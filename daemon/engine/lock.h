// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/fd.h"
#include "kernel/paths.h"

namespace wq {

// Takes the lock in the runtime directory, which is created if needed. Every process that writes scopes has
// it: the daemon, a restore, `wq-tunectl ab` or `bench`. It lasts until all copies of the descriptor are
// closed, also those of forked processes. Waits up to 2 s, because a restore may be about to end. Error:
// EWOULDBLOCK if another process has it for longer.
Result<Fd> take_lock(const Paths& paths);

}  // namespace wq
