// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace wq {
namespace {

// Segments that can be written hold relocations, which are in no file; without text relocations, the others
// hold nothing but the file.
int give_back(dl_phdr_info* object, std::size_t /*size*/, void* page) {
    const std::uintptr_t mask = ~(*static_cast<std::uintptr_t*>(page) - 1);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
        const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & mask;
        const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells of addresses as numbers
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 0;
}

}  // namespace

void give_back_heap() {
    ::malloc_trim(0);
}

void give_back_pages() {
    auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    ::dl_iterate_phdr(give_back, &page);
}

}  // namespace wq
