// SPDX-License-Identifier: LGPL-2.1-or-later
// The judge under simulated noise: is the error rate within alpha, and are real effects found? Seeds are
// fixed. If a rate has an upper bound, another check shows that the bound can be exceeded.
#include <gtest/gtest.h>

#include <cmath>

#include "noise.h"

namespace wq {
namespace {

constexpr unsigned kTrials = 10'000;
constexpr unsigned kEnough = 2'000;  // trials; enough to show that a bound is clearly exceeded
constexpr double kDeviation = 0.03;  // standard deviation of a window

NewNoise plain() {
    return [] { return independent(kDeviation); };
}
NewNoise ar(double memory) {
    return [=] { return autoregressive(kDeviation, memory); };
}
NewNoise drift() {
    return [] { return drifting(kDeviation, std::log1p(0.01)); };
}
NewNoise shifts() {
    return [] { return shifting(kDeviation, 0.2, 0.1); };
}
NewNoise heavy() {
    return [] { return student2(kDeviation); };
}

// Judges a change without an effect under NOISE.
void expect_seldom_wrong(const NewNoise& noise) {
    const JudgeSettings settings;
    const Tally tally = simulate(settings, {noise}, kTrials, 1);
    testing::Test::RecordProperty("regressed", std::to_string(tally.regressed_share()));
    EXPECT_LE(tally.regressed_share(), settings.alpha);
    EXPECT_LE(tally.improved_share(), settings.alpha);
    EXPECT_GT(tally.regressed, 0U) << "one that never reverts would pass";
}

TEST(FalseReverts, AreWithinAlphaUnderIndependentNoise) {
    expect_seldom_wrong(plain());
}
TEST(FalseReverts, AreWithinAlphaUnderNoiseWithMemory) {
    expect_seldom_wrong(ar(0.5));
}
TEST(FalseReverts, AreWithinAlphaUnderNoiseWithLongMemory) {
    expect_seldom_wrong(ar(0.9));
}
TEST(FalseReverts, AreWithinAlphaUnderDrift) {
    expect_seldom_wrong(drift());
}
TEST(FalseReverts, AreWithinAlphaUnderLevelShifts) {
    expect_seldom_wrong(shifts());
}
TEST(FalseReverts, AreWithinAlphaUnderHeavyTails) {
    expect_seldom_wrong(heavy());
}

TEST(FalseReverts, ExceedAlphaWithoutTheCoin) {
    const JudgeSettings settings;
    const Tally tally = simulate(settings, {drift(), 1, Order::baseline_first}, kEnough, 1);
    EXPECT_GT(tally.regressed_share(), 1.5 * settings.alpha) << "drift is taken for an effect";
}

TEST(FalseReverts, AreWithinAlphaForAChangeThatCostsTheTolerance) {
    JudgeSettings settings;
    settings.tolerance = 0.05;
    EXPECT_LE(simulate(settings, {ar(0.5), 1.05}, kTrials, 3).regressed_share(), settings.alpha);
    EXPECT_LE(simulate(settings, {heavy(), 1.03}, kTrials, 3).regressed_share(), settings.alpha);
    settings.tolerance = 0.04;
    EXPECT_GT(simulate(settings, {ar(0.5), 1.05}, kEnough, 3).regressed_share(), settings.alpha);
}

TEST(Power, FindsFivePercentWithinSixteenPairs) {
    const Tally tally = simulate({}, {ar(0.5), 1.05}, kTrials, 5);
    testing::Test::RecordProperty("regressed", std::to_string(tally.regressed_share()));
    EXPECT_GE(tally.regressed_share(), 0.97);
    EXPECT_LE(tally.median_pairs(), 6);
    EXPECT_EQ(tally.improved, 0U);
}

TEST(Power, FindsAnImprovementAsWell) {
    const Tally tally = simulate({}, {ar(0.5), 1 / 1.05}, kTrials, 6);
    EXPECT_GE(tally.improved_share(), 0.97);
    EXPECT_LE(tally.median_pairs(), 6);
    EXPECT_EQ(tally.regressed, 0U);
}

TEST(Power, IsLessWhereNeighboursAreNoMoreAlikeThanStrangers) {
    // Pairs remove the noise that adjacent windows share. Independent windows share none: d has the full
    // noise of both.
    const Tally tally = simulate({}, {plain(), 1.05}, kTrials, 7);
    EXPECT_GE(tally.regressed_share(), 0.88);
    EXPECT_LE(tally.regressed_share(), 0.93);
}

}  // namespace
}  // namespace wq
