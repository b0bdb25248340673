// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "resident.h"

namespace wq {
namespace {

// Not only where it ends: what is still used may lie behind it. The sanitizers have a heap of their own.
TEST(Memory, HolesInTheHeapAreGivenBack) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "not the C library's heap";
#endif
    std::vector<std::unique_ptr<std::string>> blocks(4000);
    for (auto& block : blocks) block = std::make_unique<std::string>(4000, 'x');
    const auto last = std::move(blocks.back());
    blocks.clear();
    const auto before = test::resident_memory("self");
    give_back_heap();
    EXPECT_LT(test::resident_memory("self") + 8000, before) << last->front();
}

TEST(Memory, PagesOfFilesAreGivenBack) {
    const auto before = test::resident_files("self");
    give_back_pages();
    EXPECT_LT(test::resident_files("self"), before);
}

// What was relocated or written is still there, in each library.
TEST(Memory, ProgramAndLibrariesGoOn) {
    const std::string text = fmt::format("{:.3f}", 1.5);
    give_back_pages();
    EXPECT_EQ(text, "1.500");
    EXPECT_EQ(fmt::format("{} {}", std::string(100, 'x').size(), 2.5), "100 2.5");
    EXPECT_THROW(throw std::runtime_error("unwinding"), std::runtime_error);
}

}  // namespace
}  // namespace wq
