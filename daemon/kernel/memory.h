// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// What waiting does not need, given back to the kernel.

// Free memory of the heap, wherever it lies.
void give_back_heap();

// The mapped pages of programs and libraries that nobody writes to (elf(5): PT_LOAD without PF_W), which a
// long piece of work (the start, a reload, a trial) has used; they come back from the page cache as they are
// used again: of a daemon that has started, half of its resident memory. Breakpoints and uprobes in them go
// too.
void give_back_pages();

}  // namespace wq
