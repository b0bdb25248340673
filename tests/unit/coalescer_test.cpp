// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/watches.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace wq {
namespace {

TEST(Coalescer, HasNothingDueAtFirst) {
    EXPECT_EQ(Coalescer().due(), std::nullopt);
}

TEST(Coalescer, IsDue200MillisecondsAfterALoneEvent) {
    Coalescer c;
    c.event(5'000'000);
    EXPECT_EQ(c.due(), 5'200'000U);
}

TEST(Coalescer, WaitsForTheLastOfABurst) {
    Coalescer c;
    c.event(0);  // 0 is a valid time
    c.event(150'000);
    EXPECT_EQ(c.due(), 350'000U);
    c.event(349'999);
    EXPECT_EQ(c.due(), 549'999U);
}

TEST(Coalescer, WaitsASecondAtMost) {
    Coalescer c;
    std::uint64_t now = 1'000;
    for (; now < 2'000'000 && now < c.due().value_or(now + 1); now += 100'000) c.event(now);
    EXPECT_EQ(c.due(), 1'001'000U);
    EXPECT_EQ(now, 1'001'000U) << "the loop ended because the work was due";
}

TEST(Coalescer, StartsAnewWhenDone) {
    Coalescer c;
    c.event(1'000'000);
    c.event(1'900'000);
    c.done();
    EXPECT_EQ(c.due(), std::nullopt);
    c.event(2'100'000);
    EXPECT_EQ(c.due(), 2'300'000U) << "not held to the first burst's second";
}

}  // namespace
}  // namespace wq
