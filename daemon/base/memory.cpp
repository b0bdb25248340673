// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

#include "base/file.h"

namespace wq {
namespace {

struct Advice {
    int advice;
    bool written;         // also advise on writable segments
    std::uintptr_t page;  // bytes
};

void advise_on_range(std::uintptr_t begin, std::uintptr_t end, int advice) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader and the kernel report addresses as numbers
    ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

// Writable segments contain relocations, which are not in the file. Without text relocations, the other
// segments contain only the file's bytes.
int advise(dl_phdr_info* object, std::size_t /*size*/, void* data) {
    const auto* to = static_cast<const Advice*>(data);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || ((segment.p_flags & PF_W) != 0 && !to->written)) continue;
        const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(to->page - 1);
        advise_on_range(begin, object->dlpi_addr + segment.p_vaddr + segment.p_memsz, to->advice);
    }
    return 0;
}

void advise_on_segments(int advice, bool written) {
    Advice to{advice, written, static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))};
    ::dl_iterate_phdr(advise, &to);
}

void advise_on_heap_and_stack(int advice) {
    std::istringstream maps(read_file("/proc/self/maps").value_or(""));
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        if (!line.ends_with("[heap]") && !line.ends_with("[stack]")) continue;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2)
            advise_on_range(begin, end, advice);
    }
}

}  // namespace

void give_back_heap() {
    ::malloc_trim(0);
}

void give_back_pages() {
    advise_on_segments(MADV_DONTNEED, false);
}

// Locks first, so that the pages read below stay in memory. Reading allocates no memory for pages that were
// never written.
Status hold_memory() {
    const int failed = ::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0 ? 0 : errno;
    // Since Linux 5.14. Older kernels only keep the pages that are already in memory.
    advise_on_segments(MADV_POPULATE_READ, true);
    advise_on_heap_and_stack(MADV_POPULATE_READ);
    if (failed != 0) return fail_errno("locking memory", failed);
    return {};
}

void let_go_of_memory() {
    ::munlockall();
}

}  // namespace wq
