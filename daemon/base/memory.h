// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"

namespace wq {

// Locks the current mappings of the process in memory until let_go_of_memory(). First reads the program, the
// libraries, the heap and the stack, also from swap: while a candidate is in place, restoring must not need
// a page from a disk that the candidate may have blocked. Later mappings are not locked. Error: the limit is
// too low (LimitMEMLOCK= of the unit).
Status hold_memory();
void let_go_of_memory();

}  // namespace wq
