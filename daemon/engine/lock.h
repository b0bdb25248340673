// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/fd.h"
#include "kernel/paths.h"

namespace wq {

// The runtime directory with our lock on it: whoever writes scopes has it, the daemon, a restore,
// `wq-tunectl ab` or `bench`. It lasts until all copies of the descriptor are closed, a forked process's too.
// EWOULDBLOCK where another holds it for longer than a restore that is just ending would.
Result<Fd> take_lock(const Paths& paths);

}  // namespace wq
