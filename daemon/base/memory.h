// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"

namespace wq {

// Functions to return unneeded memory to the kernel before waiting.

// Returns free heap memory to the kernel.
void give_back_heap();

// Drops the read-only mapped pages of the program and its libraries (elf(5): PT_LOAD without PF_W) when a
// long operation (start, reload, slots) is over. They are read again from the page cache when needed. In a
// daemon that has started, they are half of the resident memory. This also removes breakpoints and uprobes in
// them.
void give_back_pages();

// Locks the current mappings of the process in memory until let_go_of_memory(). First reads the program, the
// libraries, the heap and the stack, also from swap: while a candidate is in place, restoring must not need
// a page from a disk that the candidate may have blocked. Costs at least as much resident memory as
// give_back_pages() saves. Later mappings are not locked. Error: the limit is too low (LimitMEMLOCK= of the
// unit).
Status hold_memory();
void let_go_of_memory();

}  // namespace wq
