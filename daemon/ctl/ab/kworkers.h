// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernel/paths.h"

namespace wq::ab {

// Counts the threads named kworker/u*: the workers of all unbound pools, of any workqueue, strict or not,
// busy or idle (kernel/workqueue.c, format_worker_id()). An idle worker stays for five minutes.
unsigned count_kworkers(const Paths& paths);

}  // namespace wq::ab
