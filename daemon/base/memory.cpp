// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace wq {
namespace {

struct Advice {
    int advice;
    std::uintptr_t page;  // bytes
};

// Segments that can be written hold relocations, which are in no file; without text relocations, the others
// hold nothing but the file.
int advise(dl_phdr_info* object, std::size_t /*size*/, void* data) {
    const auto* to = static_cast<const Advice*>(data);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
        const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(to->page - 1);
        const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells of addresses as numbers
        ::madvise(reinterpret_cast<void*>(begin), end - begin, to->advice);
    }
    return 0;
}

void advise_on_code(int advice) {
    Advice to{advice, static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))};
    ::dl_iterate_phdr(advise, &to);
}

}  // namespace

void give_back_heap() {
    ::malloc_trim(0);
}

void give_back_pages() {
    advise_on_code(MADV_DONTNEED);
}

// Of what is not code, what was never touched needs no disk: only what is there is kept.
Status hold_memory() {
    const int failed = ::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0 ? 0 : errno;
    advise_on_code(MADV_POPULATE_READ);  // since Linux 5.14; before, what has been used is kept
    if (failed != 0) return fail_errno("locking memory", failed);
    return {};
}

void let_go_of_memory() {
    ::munlockall();
}

}  // namespace wq
