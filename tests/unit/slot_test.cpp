// SPDX-License-Identifier: LGPL-2.1-or-later
// Slots and what is counted in them.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "counters/counter_table.h"
#include "experiment/slot.h"
#include "fake_counters.h"
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
        over = clock.next().action == SlotAction::finish;
        out.push_back(std::to_string(clock.due() / 1000) + " " +
                      kNames[static_cast<unsigned>(clock.next().action)] + " " +
                      std::to_string(clock.next().window));
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
    const std::pair<unsigned, std::vector<double>> rows[] = {
        {1, {-1, 0, 1, 1999, 2000, 2999, std::nan("")}},
        {2, {3000, 4999}},
        {2500, {5e6}},
        {65535, {65535 * 2000.0, 1e300, std::numeric_limits<double>::infinity()}}};
    for (const auto& [n, windows] : rows)
        for (const double items : windows) EXPECT_EQ(sampled_every(items), n) << items;
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
    EXPECT_TRUE(is_beyond_noise({2.3, 2.25, 2.35, 2.3}, 2.3)) << "a steady effect is no noise";
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

TEST(Coins, ABrokenFileIsSaid) {
    test::TempTree tree{test::Dir("run")};
    tree.write("run/slot.json", "{\"members\": 3");
    EXPECT_FALSE(coins_file(tree.path("run/slot.json")).read());
}

const std::vector<ComparedCounter> kCounters = {
    {.name = "latency"},
    {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true},
    {.name = kOthers, .tolerance = 0.02, .guard = true}};

class TargetPairTest : public testing::Test {
  protected:
    TargetPairTest() {
        (void)work_.attach({"kcryptd"}, {});
        work_.count = [this](const auto&, unsigned window) { return windows_[window]; };
    }
    static WorkCount counted(std::uint64_t items, double latency = 1000) {
        return {.items = items, .latency = latency, .timed = items, .throughput = static_cast<double>(items)};
    }
    PairResult measure(std::uint64_t first = 1'500'000, std::uint64_t second = 1'500'000) {
        TargetPair pair(meters_);
        pair.open(0, 0);
        if (cut_[0])
            pair.cut(0, 300'000);
        else
            pair.close(0, first, 1'500'000);
        pair.open(1, 10'000'000);
        if (cut_[1])
            pair.cut(1, 10'300'000);
        else
            pair.close(1, 10'000'000 + second, 1'500'000);
        if (!spoilt_.empty()) pair.spoil(spoilt_);
        return pair.finish();
    }

    test::FakeCounters work_;
    Meters meters_{kCounters, &work_, 0, {}, 200};
    std::array<WorkCount, 2> windows_{counted(1000), counted(1000, 1100)};
    std::array<bool, 2> cut_{};
    std::string spoilt_;
};

TEST_F(TargetPairTest, ValuesAreByWindowAndThenByArm) {
    const PairResult result = measure();
    EXPECT_EQ(result.drop, "");
    EXPECT_FALSE(result.lost);
    EXPECT_EQ(result.items, 2000U);
    const auto later = by_arm(result, false);
    EXPECT_EQ(later[0]->reference, 1000);
    EXPECT_EQ(later[0]->candidate, 1100);
    EXPECT_EQ(by_arm(result, true)[0]->candidate, 1000);
    EXPECT_FALSE(later[2]) << "the others are not measured here";
    EXPECT_NEAR(*difference_in_time(result, kCounters), std::log(1.1), 1e-12);
}

TEST_F(TargetPairTest, TooFewItemsInBothDropIt) {
    windows_ = {counted(199), counted(199)};
    EXPECT_EQ(measure().drop, "too few items");
    windows_ = {counted(200), counted(0)};
    EXPECT_EQ(measure().drop, "");
    EXPECT_EQ(measure().lost, 1U) << "the empty window counts against its arm";
    EXPECT_NEAR(*difference_in_time(measure(), kCounters), std::log(3), 1e-12)
        << "and against what it ran beside";
}

TEST_F(TargetPairTest, AWindowThatCameTooLateIsLost) {
    EXPECT_EQ(measure(2'000'000).lost, 0U);
    EXPECT_EQ(measure(1'500'000, 2'000'000).lost, 1U);
    EXPECT_EQ(measure(2'000'000, 2'000'000).drop, "both windows were lost");
    EXPECT_FALSE(measure(1'800'000).lost);
}

TEST_F(TargetPairTest, AWindowInWhichItemsWereNotSeenIsLost) {
    windows_[1].lost = 60;
    EXPECT_EQ(measure().lost, 1U);
    windows_[1].lost = 40;
    EXPECT_FALSE(measure().lost);
}

// A window that was cut is compared with the other window of its pair.
TEST_F(TargetPairTest, AWindowThatStarvedIsLostUnlessTheOtherDidNoBetter) {
    cut_ = {true, false};
    windows_ = {counted(60), counted(1000)};  // 200 would be the same rate
    EXPECT_EQ(measure().lost, 0U);
    windows_ = {counted(190), counted(1000)};
    EXPECT_FALSE(measure().lost) << "the load had changed, and went on so";
    cut_ = {true, true};
    EXPECT_EQ(measure().drop, "both windows were lost");
}

// The kernel refuses what `enqueue` needs. Without another judged counter there is nothing to judge by.
TEST_F(TargetPairTest, WhatIsNeverKnownDropsItsOwnValueOnly) {
    const ComparedCounter enqueue{.name = "enqueue"};
    meters_.counters = {{.name = "latency"}, enqueue};
    const PairResult result = measure();
    EXPECT_EQ(result.drop, "");
    EXPECT_FALSE(result.lost);
    EXPECT_TRUE(result.values[0]);
    EXPECT_FALSE(result.values[1]);
    meters_.counters = {enqueue};
    EXPECT_EQ(measure().drop, "enqueue is not known");
    meters_.counters = kCounters;
    windows_[0].throughput = NAN;  // of a guard
    EXPECT_EQ(measure().drop, "");
    EXPECT_FALSE(measure().values[1]);
    EXPECT_TRUE(measure().values[0]);
}

// The arm with less CPU time must not lose by that.
TEST_F(TargetPairTest, TooLittleCpuTimeInOneWindowDropsItsOwnValueOnly) {
    meters_.counters = {{.name = "latency"}, {.name = "cpu"}};
    windows_[0].cpu = 5000;
    windows_[1].cpu = NAN;
    EXPECT_EQ(measure().drop, "");
    EXPECT_FALSE(measure().lost);
    EXPECT_TRUE(measure().values[0]);
    EXPECT_FALSE(measure().values[1]);
}

// Of few items, perhaps none is one of those that are timed (one of N). Few items may be due to the arm.
TEST_F(TargetPairTest, AWindowWithoutATimedItemIsLost) {
    windows_[0] = counted(40, NAN);
    windows_[0].timed = 0;
    EXPECT_EQ(measure().lost, 0U);
    EXPECT_EQ(measure().drop, "");
    std::swap(windows_[0], windows_[1]);
    EXPECT_EQ(measure().lost, 1U);
    windows_[0] = windows_[1];
    windows_[0].items = 1000;
    EXPECT_EQ(measure().drop, "latency is not known") << "both windows have it in common";
}

// The items ended only after the window. Leaving the value out would depend on the arm.
TEST_F(TargetPairTest, AThroughputOfZeroCounts) {
    windows_[1].throughput = 0;
    const PairResult result = measure();
    ASSERT_TRUE(result.values[1]);
    EXPECT_EQ((*result.values[1])[1], kZeroReading);
}

TEST_F(TargetPairTest, ALookTellsOfTheWindowThatIsOpen) {
    std::uint64_t completed = 50;
    work_.completed = [&](const auto&) { return completed; };
    TargetPair pair(meters_);
    EXPECT_FALSE(pair.look(0, 0));
    pair.open(0, 1'000'000);
    completed = 350;
    const auto look = pair.look(0, 1'300'000);
    ASSERT_TRUE(look);
    EXPECT_DOUBLE_EQ(look->completed, 300);
    EXPECT_DOUBLE_EQ(look->seconds, 0.3);
    pair.cut(0, 1'300'000);
    EXPECT_FALSE(pair.look(0, 1'400'000));
}

TEST(OthersByArm, IsTheMeanByThisTargetsCoin) {
    EXPECT_FALSE(others_by_arm({}, true));
    const auto values = others_by_arm({0.1, 0.3}, false);
    EXPECT_NEAR(std::log(values->candidate / values->reference), 0.2, 1e-12);
    EXPECT_NEAR(std::log(others_by_arm({0.1, 0.3}, true)->candidate), -0.2, 1e-12);
}

// Otherwise the jitter of the timer would decide between the windows: evidence does not depend on the scale.
TEST(TargetPair, WhereNothingHappenedBothWindowsAreTheSame) {
    const test::TempTree tree{
        test::Dir("proc/pressure", {test::File("io", "full avg10=0.00 avg60=0.00 avg300=0.00 total=77\n")})};
    TargetPair pair({{{.name = "psi:io.full"}}, nullptr, 0, Paths{tree.root()}, 200});
    pair.open(0, 0);
    pair.close(0, 8'000'111, 8'000'000);
    pair.open(1, 10'000'000);
    pair.close(1, 18'000'333, 8'000'000);
    const PairResult result = pair.finish();
    EXPECT_EQ(result.drop, "");
    ASSERT_TRUE(result.values.at(0));
    EXPECT_EQ((*result.values[0])[0], (*result.values[0])[1]);
    EXPECT_EQ((*result.values[0])[0], 1e-6 / 8);
}

// Dropping the pair would depend on the arm: an error count is 0 under the better arm.
TEST(TargetPair, AFileThatIsZeroInOneWindowDropsNothing) {
    const std::vector<ComparedCounter> counters = {{.name = "file:/run/app/errors"}};
    for (const bool first : {true, false}) {
        test::TempTree tree{test::File("run/app/errors", first ? "0\n" : "5\n")};
        TargetPair pair({counters, nullptr, 0, Paths{tree.root()}, 200});
        pair.open(0, 0);
        pair.close(0, 2'000'000, 2'000'000);
        tree.write("run/app/errors", first ? "5\n" : "0\n");
        pair.open(1, 3'000'000);
        pair.close(1, 5'000'000, 2'000'000);
        const PairResult result = pair.finish();
        EXPECT_EQ(result.drop, "");
        ASSERT_TRUE(result.values.at(0));
        const Comparison comparison(counters);
        EXPECT_EQ(comparison.why_refused(by_arm(result, false)), "");
        EXPECT_DOUBLE_EQ(log_ratio(counters[0], by_arm(result, false)[0].value()),
                         std::log(first ? 3 : 1.0 / 3));
    }
}

}  // namespace
}  // namespace wq
