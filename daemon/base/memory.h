// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "base/result.h"

namespace wq {

// What waiting does not need, given back to the kernel.

// Free memory of the heap, wherever it lies.
void give_back_heap();

// The mapped pages of programs and libraries that nobody writes to (elf(5): PT_LOAD without PF_W), which a
// long piece of work (the start, a reload, a trial) has used; they come back from the page cache as they are
// used again: of a daemon that has started, half of its resident memory. Breakpoints and uprobes in them go
// too.
void give_back_pages();

// Keeps in memory what the process has mapped, until let_go_of_memory(); its program and libraries, the heap
// and the stack are read first, from swap as well: while a candidate is in place, taking it back must need no
// page from a disk that the candidate may have brought to a stand. Costs as much resident memory as
// give_back_pages() saves, and more. What is mapped later is not kept. Error: the kernel does not allow as
// much (LimitMEMLOCK= of the unit).
Status hold_memory();
void let_go_of_memory();

}  // namespace wq
