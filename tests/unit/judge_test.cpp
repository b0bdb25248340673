// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "judge/trial.h"

namespace wq {
namespace {

// A pair with the difference D.
Readings of(double d) {
    return {1, std::exp(d)};
}

Trial one_counter(const JudgeSettings& settings = {}) {
    return {settings, {"latency"}};
}

std::optional<TrialVerdict> feed(Trial& trial, double d, unsigned times) {
    std::optional<TrialVerdict> verdict;
    while (times-- > 0 && !verdict) verdict = trial.add(of(d));
    return verdict;
}

TEST(Trial, RegressesAsSoonAsTheEvidenceSuffices) {
    Trial trial = one_counter();
    EXPECT_FALSE(feed(trial, 0.05, 5)) << "17.6 is not 20";
    const auto verdict = feed(trial, 0.05, 1);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->outcome, TrialOutcome::regressed);
    EXPECT_EQ(verdict->standing.pairs, 6U);
    EXPECT_EQ(verdict->standing.counter, "latency");
    EXPECT_NEAR(evidence_of(verdict->standing.log_regressed), 32.928832, 1e-5);
    EXPECT_NEAR(verdict->standing.effect.percent, 100 * std::expm1(0.05), 1e-9);
}

TEST(Trial, KeepsItsVerdict) {
    Trial trial = one_counter();
    ASSERT_TRUE(feed(trial, 0.05, 6));
    const auto later = feed(trial, -5, 10);
    EXPECT_EQ(later->outcome, TrialOutcome::regressed);
    EXPECT_EQ(later->standing.pairs, 6U);
    EXPECT_EQ(trial.end("stopped").outcome, TrialOutcome::regressed);
}

TEST(Trial, ImprovesAndIsInconclusive) {
    Trial better = one_counter();
    EXPECT_EQ(feed(better, -0.05, 6).value().outcome, TrialOutcome::improved);

    Trial neither = one_counter();
    std::optional<TrialVerdict> verdict;
    for (int i = 0; !verdict; i++) verdict = neither.add(of(i % 2 == 0 ? 0.05 : -0.05));
    EXPECT_EQ(verdict->outcome, TrialOutcome::inconclusive);
    EXPECT_EQ(verdict->reason, "max_pairs");
    EXPECT_EQ(verdict->standing.pairs, 16U);
}

TEST(Trial, DecidesAtTheLastPairRatherThanGiveUp) {
    JudgeSettings settings;
    settings.max_pairs = 6;
    Trial trial = one_counter(settings);
    EXPECT_EQ(feed(trial, 0.05, 6).value().outcome, TrialOutcome::regressed);
    settings.max_pairs = 5;
    Trial shorter = one_counter(settings);
    EXPECT_EQ(feed(shorter, 0.05, 5).value().outcome, TrialOutcome::inconclusive);
}

TEST(Trial, TakesTiesForNothing) {
    Trial trial = one_counter();
    const auto verdict = feed(trial, 0, 16);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->outcome, TrialOutcome::inconclusive);
    EXPECT_EQ(verdict->standing.log_regressed, 0);
    EXPECT_EQ(verdict->standing.log_improved, 0);
    EXPECT_EQ(verdict->standing.effect.percent, 0);
}

TEST(Trial, ToleratesWhatItIsToldTo) {
    JudgeSettings settings;
    settings.tolerance = 0.05;
    Trial less = one_counter(settings);
    EXPECT_EQ(feed(less, std::log(1.04), 16).value().outcome, TrialOutcome::inconclusive);
    Trial more = one_counter(settings);
    EXPECT_EQ(feed(more, std::log(1.06), 16).value().outcome, TrialOutcome::regressed);
    Trial better = one_counter(settings);
    EXPECT_EQ(feed(better, std::log(0.99), 16).value().outcome, TrialOutcome::improved)
        << "tolerance is for harm";
}

TEST(Trial, TurnsTheSignWhereHigherIsBetter) {
    Trial trial({}, {"throughput", true});
    const auto verdict = feed(trial, 0.05, 16);
    EXPECT_EQ(verdict->outcome, TrialOutcome::improved);
    EXPECT_LT(verdict->standing.effect.percent, 0) << "the effect is one on a cost";
}

TEST(Trial, EndsWithTheReasonItIsGiven) {
    Trial trial = one_counter();
    EXPECT_EQ(trial.end("gone").standing.pairs, 0U);
    EXPECT_EQ(trial.end("later").reason, "gone");
    EXPECT_EQ(trial.add(of(1)).value().reason, "gone");
}

TEST(Trial, TakesTheExtremesOfDoubles) {
    Trial trial = one_counter();
    constexpr double least = std::numeric_limits<double>::denorm_min();
    constexpr double most = std::numeric_limits<double>::max();
    std::optional<TrialVerdict> verdict;
    for (int i = 0; i < 16 && !verdict; i++) verdict = trial.add({least, most});
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->standing.effect.percent, most);
    EXPECT_TRUE(std::isfinite(verdict->standing.log_regressed));
}

}  // namespace
}  // namespace wq
