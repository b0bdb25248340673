// SPDX-License-Identifier: LGPL-2.1-or-later
// Slots and what is counted in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "counters/counter_table.h"
#include "evidence/accrue.h"
#include "experiment/slot.h"
#include "noise.h"
#include "temp_tree.h"

namespace wq {
namespace {

// ---- slot

// "ms action window" of each action. Each action takes LATE ms.
std::vector<std::string> walk(const SlotTimes& times, std::uint64_t late = 0) {
    static constexpr const char* kNames[] = {"put", "open", "look", "close", "finish"};
    SlotClock clock(times, 0);
    std::vector<std::string> out;
    for (bool over = false; !over;) {
        over = clock.action() == SlotAction::finish;
        out.push_back(std::to_string(clock.due() / 1000) + " " +
                      kNames[static_cast<unsigned>(clock.action())] + " " + std::to_string(clock.window()));
        clock.done(clock.due() + late * 1000);
    }
    return out;
}

TEST(SlotClock, BothWindowsBeginWithAChangeFromTheOtherArm) {
    EXPECT_THAT(walk({}), testing::ElementsAre("0 put 1", "500 put 0", "1000 open 0", "1300 look 0",
                                               "2500 close 0", "2500 put 1", "3000 open 1", "3300 look 1",
                                               "4500 close 1", "5000 finish 1"));
}

// The washout is counted from the return of the last write; a look that takes long makes no window longer.
TEST(SlotClock, ASlowActionDoesNotShortenWhatIsCounted) {
    EXPECT_THAT(walk({}, 100), testing::ElementsAre("0 put 1", "600 put 0", "1200 open 0", "1600 look 0",
                                                    "2800 close 0", "2900 put 1", "3500 open 1",
                                                    "3900 look 1", "5100 close 1", "5700 finish 1"));
}

TEST(SlotClock, AShortWindowIsLookedAtAtItsEnd) {
    EXPECT_THAT(walk({.window = 700'000}), testing::Contains("1200 look 0"));
}

TEST(SlotSize, WritesTakeNoMoreThanOnePercentOfAWindow) {
    const std::vector<std::uint64_t> writes(16, 1'000);
    EXPECT_EQ(size_of_slot(writes, 2'000'000, 16).targets, 16U);
    EXPECT_EQ(size_of_slot(writes, 2'000'000, 4).targets, 4U);
    EXPECT_EQ(size_of_slot(writes, 500'000, 16).targets, 5U);
    EXPECT_EQ(size_of_slot({15'000, 1'000, 9'000, 1}, 2'000'000, 16).targets, 2U);
}

TEST(SlotSize, ASingleTargetWithSlowWritesGetsALongerWindow) {
    EXPECT_EQ(size_of_slot({50'000, 1'000}, 2'000'000, 16).targets, 1U);
    EXPECT_EQ(size_of_slot({50'000, 1'000}, 2'000'000, 16).window, 5'000'000U);
    EXPECT_EQ(size_of_slot({900'000}, 2'000'000, 16).window, kLongestWindow);
    EXPECT_EQ(size_of_slot({1}, 2'000'000, 16).window, 2'000'000U);
    EXPECT_EQ(size_of_slot({900'000}, 60'000'000, 16).window, 60'000'000U)
        << "what the policy asks for is not cut";
    EXPECT_EQ(size_of_slot({}, 2'000'000, 16).targets, 0U);
}

// ---- sampling

// All items of a small window, about two thousand of a large one. The kernel's side has 16 bits.
TEST(Sampling, TakesAboutTwoThousandItems) {
    const std::pair<double, unsigned> rows[] = {{-1, 1},
                                                {0, 1},
                                                {1, 1},
                                                {1999, 1},
                                                {2000, 1},
                                                {2999, 1},
                                                {std::nan(""), 1},
                                                {3000, 2},
                                                {4999, 2},
                                                {5e6, 2500},
                                                {65535 * 2000.0, 65535},
                                                {1e300, 65535},
                                                {std::numeric_limits<double>::infinity(), 65535}};
    for (const auto& [items, n] : rows) EXPECT_EQ(sampled_every(items), n) << items;
}

// ---- caution

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

// ---- coins

Coins two() {
    Coins out;
    out.members = {{"kcryptd", "a\nkey\n", true}, {"write\"back\xff", "other", false}};
    return out;
}

TEST(Coins, ComeBackUntilTheyAreForgotten) {
    test::TempTree tree{test::Dir("run")};
    const std::string path = tree.path("run/slot.json");
    Coins coins = two();
    coins.running = 1;
    ASSERT_TRUE(keep_coins(path, coins));
    const auto back = read_coins(path);
    ASSERT_TRUE(back && *back);
    EXPECT_EQ((*back)->running, 1U);
    ASSERT_EQ((*back)->members.size(), 2U);
    EXPECT_EQ((*back)->members[0].comparison, "a\nkey\n");
    EXPECT_TRUE((*back)->members[0].candidate_first);
    EXPECT_FALSE((*back)->members[1].candidate_first);
    forget_coins(path);
    const auto again = read_coins(path);
    ASSERT_TRUE(again);
    EXPECT_FALSE(*again);
}

TEST(Coins, SayWhichArmIsInPlace) {
    Coins coins = two();
    coins.running = 0;
    EXPECT_EQ(coins.side_of(coins.members[0]), Side::candidate);
    EXPECT_EQ(coins.side_of(coins.members[1]), Side::reference);
    coins.running = 1;
    EXPECT_EQ(coins.side_of(coins.members[0]), Side::reference);
    EXPECT_EQ(coins.side_of(coins.members[1]), Side::candidate);
}

TEST(Coins, ABrokenFileIsSaidAndGone) {
    test::TempTree tree{test::Dir("run")};
    tree.write("run/slot.json", "{\"members\": 3");
    EXPECT_FALSE(read_coins(tree.path("run/slot.json")));
    EXPECT_FALSE(tree.exists("run/slot.json"));
}

}  // namespace
}  // namespace wq
