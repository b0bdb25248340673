// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"

namespace wq::ab {

// Threads named kworker/u*: the workers of all unbound pools, of whichever workqueue, strict or not, busy or
// idle (kernel/workqueue.c, format_worker_id()). An idle one stays for five minutes.
unsigned count_kworkers(const Paths& paths);

}  // namespace wq::ab
