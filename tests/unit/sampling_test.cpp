// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/counter_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace wq {
namespace {

TEST(Sampling, AllItemsOfASmallWindow) {
    for (const double items : {-1.0, 0.0, 1.0, 1999.0, 2000.0, 2999.0})
        EXPECT_EQ(sampled_every(items), 1U) << items;
    EXPECT_EQ(sampled_every(std::nan("")), 1U);
}

TEST(Sampling, AboutTwoThousandOfALargeOne) {
    EXPECT_EQ(sampled_every(3000), 2U);  // 1.5 is rounded up
    EXPECT_EQ(sampled_every(4999), 2U);
    EXPECT_EQ(sampled_every(5'000'000), 2500U);
}

TEST(Sampling, TheKernelsSideHasSixteenBits) {
    EXPECT_EQ(sampled_every(65535 * 2000.0), 65535U);
    EXPECT_EQ(sampled_every(1e300), 65535U);
    EXPECT_EQ(sampled_every(std::numeric_limits<double>::infinity()), 65535U);
}

}  // namespace
}  // namespace wq
