// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "as_nobody.h"
#include "base/file.h"

namespace wq {
namespace {

unsigned long locked() {  // kB
    std::ifstream status("/proc/self/status");
    unsigned long kilobytes = 0;
    for (std::string word; status >> word;)
        if (word == "VmLck:") status >> kilobytes;
    return kilobytes;
}

// Like the data of a library that was not accessed since it was mapped.
char data_of_a_file[1U << 20] = {1};

// Number of pages of BEGIN to BEGIN + SIZE that are not in memory.
std::size_t absent(const char* begin, std::size_t size) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const Fd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::size_t out = 0;
    for (std::size_t at = 0; at < size; at += page) {
        const auto number = reinterpret_cast<std::uintptr_t>(begin + at) / page;
        std::uint64_t entry = 0;
        (void)!::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(number * sizeof entry));
        if ((entry & (1ULL << 63)) == 0) out++;
    }
    return out;
}

// Returns an error text; "" if all is right.
std::string hold_and_let_go() {
    const auto* heap = static_cast<const char*>(::sbrk(1 << 20));
    const auto to_be_read = [&] {
        return absent(data_of_a_file, sizeof data_of_a_file) + absent(heap, 1U << 20);
    };
    if (to_be_read() < 400) return "the test pages are already in memory before hold_memory()";
    if (const auto held = hold_memory(); !held) return held.error().text;
    if (locked() < 1000) return "not held";
    if (to_be_read() > 0) return fmt::format("{} pages are not read", to_be_read());
    let_go_of_memory();
    return locked() > 0 ? "still held" : "";
}

// QEMU's user mode emulation accepts any advice and does nothing.
bool advice_is_taken() {
    return ::madvise(nullptr, 0, -1) != 0;
}

// In a child process, because it raises RLIMIT_MEMLOCK first.
TEST(Memory, WhatIsHeldIsLockedUntilItIsLetGo) {
#ifdef WQ_TUNED_SANITIZED
    GTEST_SKIP() << "with the sanitizer mlockall() does nothing";
#endif
    if (!advice_is_taken()) GTEST_SKIP() << "madvise() does nothing here";
    const auto child = [] {
        const rlimit most{RLIM_INFINITY, RLIM_INFINITY};
        (void)::setrlimit(RLIMIT_MEMLOCK, &most);
        const std::string wrong = hold_and_let_go();
        fmt::print(stderr, "{}", wrong);
        ::_exit(wrong.empty() ? 0 : 1);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(Memory, WhereItMayNotBeHeldThatIsSaid) {
#ifdef WQ_TUNED_SANITIZED
    GTEST_SKIP() << "with the sanitizer mlockall() does nothing";
#endif
    const std::string said = test::as_nobody([] {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_MEMLOCK, &none);
        const auto held = hold_memory();
        return held ? "held" : held.error().text;
    });
    EXPECT_EQ(said.substr(0, 16), "locking memory: ");
}

}  // namespace
}  // namespace wq
