// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "resident.h"

namespace wq {
namespace {

TEST(Memory, PagesOfFilesAreGivenBack) {
    const auto before = test::resident_files("self");
    give_back_memory();
    EXPECT_LT(test::resident_files("self"), before);
}

// What was relocated or written is still there, in each library.
TEST(Memory, ProgramAndLibrariesGoOn) {
    const std::string text = fmt::format("{:.3f}", 1.5);
    give_back_memory();
    EXPECT_EQ(text, "1.500");
    EXPECT_EQ(fmt::format("{} {}", std::string(100, 'x').size(), 2.5), "100 2.5");
    EXPECT_THROW(throw std::runtime_error("unwinding"), std::runtime_error);
}

}  // namespace
}  // namespace wq
