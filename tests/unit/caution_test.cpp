// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/accrue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "noise.h"

namespace wq {
namespace {

TEST(Starves, UnderAThirdOfWhatWasExpected) {
    EXPECT_TRUE(starves(99, 300));
    EXPECT_FALSE(starves(100, 300));
    EXPECT_FALSE(starves(0, 20)) << "that is chance";
}

TEST(BeyondNoise, NeedsADeviation) {
    EXPECT_FALSE(is_beyond_noise({0, 0, 0}, 10));
    EXPECT_TRUE(is_beyond_noise({0, 0, 0, 0}, std::log(3.1)));
    EXPECT_FALSE(is_beyond_noise({0, 0, 0, 0}, std::log(2.9)));
}

// A steady effect from the first pair on is not noise.
TEST(BeyondNoise, SteadyHarmOfTenTimesIsBeyondIt) {
    EXPECT_TRUE(is_beyond_noise({2.3, 2.25, 2.35, 2.3}, 2.3));
}

// With window noise of log-sd 0.8 the old rule (three times the cost in two consecutive pairs) took back 30%
// of the harmless changes within 16 pairs.
TEST(BeyondNoise, AHarmlessChangeInMuchNoiseRarelyRests) {
    constexpr unsigned kRuns = 4'000;
    Random random(7);
    unsigned rests = 0;
    for (unsigned run = 0; run < kRuns; run++) {
        std::deque<double> before;
        for (unsigned pair = 0; pair < 64; pair++) {
            const double d = 0.8 * random.normal() - 0.8 * random.normal();
            if (is_beyond_noise(before, d)) {
                rests++;
                break;
            }
            before.push_back(d);
        }
    }
    RecordProperty("share", std::to_string(static_cast<double>(rests) / kRuns));
    EXPECT_LE(rests, kRuns / 50);
    EXPECT_GT(rests, 0U) << "one that never speaks would pass";
}

TEST(LostTime, IsOfOneDay) {
    LostTime lost;
    lost.add(1, 0.5, 2);
    lost.add(1, -3, 2);
    EXPECT_DOUBLE_EQ(lost.on(1), 2 * (1 - std::exp(-0.5)));
    EXPECT_DOUBLE_EQ(lost.on(2), 0);
    lost.add(2, std::log(60), 2.5);
    EXPECT_NEAR(lost.on(2), 2.5, 0.05) << "never more than the time itself";
}

}  // namespace
}  // namespace wq
