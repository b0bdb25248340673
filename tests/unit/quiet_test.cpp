// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/watches.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

TEST(Quiet, FallsOnceWhenTheWorkIsOver) {
    Quiet quiet;
    EXPECT_FALSE(quiet.fell()) << "the start";
    EXPECT_TRUE(quiet.fell());
    EXPECT_FALSE(quiet.fell()) << "it has been quiet";
    quiet.worked();
    EXPECT_FALSE(quiet.fell());
    quiet.worked();
    EXPECT_FALSE(quiet.fell()) << "the work goes on";
    EXPECT_TRUE(quiet.fell());
    EXPECT_FALSE(quiet.fell());
}

}  // namespace
}  // namespace wq
