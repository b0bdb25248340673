// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/memory.h"

#include <link.h>
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

// Since Linux 5.14. Older kernels only keep the pages that are already in memory.
void read_range(std::uintptr_t begin, std::uintptr_t end) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader and the kernel report addresses as numbers
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
}

int read_segments(dl_phdr_info* object, std::size_t /*size*/, void* page) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        read_range(begin & ~(*static_cast<std::uintptr_t*>(page) - 1), begin + segment.p_memsz);
    }
    return 0;
}

void read_heap_and_stack() {
    std::istringstream maps(read_file("/proc/self/maps").value_or(""));
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        if (!line.ends_with("[heap]") && !line.ends_with("[stack]")) continue;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2) read_range(begin, end);
    }
}

}  // namespace

// Locks first, so that the pages read below stay in memory. Reading allocates no memory for pages that were
// never written.
Status hold_memory() {
    const int failed = ::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0 ? 0 : errno;
    auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    ::dl_iterate_phdr(read_segments, &page);
    read_heap_and_stack();
    if (failed != 0) return fail_errno("locking memory", failed);
    return {};
}

void let_go_of_memory() {
    ::munlockall();
}

}  // namespace wq
