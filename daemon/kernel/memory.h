// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

namespace wq {

// Gives back to the kernel what a long piece of work (the start, a reload, a trial) needed and waiting does
// not: free memory of the heap, and the mapped pages of programs and libraries that nobody writes to
// (elf(5): PT_LOAD without PF_W), which come back from the page cache as they are used again: of a daemon
// that has started, half of its resident memory. Breakpoints and uprobes in them go too.
void give_back_memory();

}  // namespace wq
