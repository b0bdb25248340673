// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "judge/trial.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A pair of one counter whose d this is.
WindowPair of(double d) {
    return {{{1, std::exp(d)}}, {}};
}
WindowPair of(double d1, double d2) {
    return {{{1, std::exp(d1)}, {1, std::exp(d2)}}, {}};
}

Trial one_counter(const JudgeSettings& settings = {}) {
    return {settings, {{"latency"}}};
}
Trial two_counters(const JudgeSettings& settings = {}) {
    return {settings, {{"latency"}, {"tail"}}};
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
    Trial trial({}, {{"throughput", true}});
    const auto verdict = feed(trial, 0.05, 16);
    EXPECT_EQ(verdict->outcome, TrialOutcome::improved);
    EXPECT_LT(verdict->standing.effect.percent, 0) << "the effect is one on a cost";
}

TEST(Trial, AsksMoreOfEachOfSeveralCounters) {
    Trial trial = two_counters();
    for (int i = 0; i < 6; i++) EXPECT_FALSE(trial.add(of(0.05, i % 2 == 0 ? 0.01 : -0.01)));
    const auto verdict = trial.add(of(0.05, 0.01));  // 62.4 >= 2/0.05, where 32.9 was not
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->outcome, TrialOutcome::regressed);
    EXPECT_EQ(verdict->standing.counter, "latency");
    EXPECT_EQ(verdict->standing.pairs, 7U);
}

TEST(Trial, RegressesWhereOneCounterIsWorseAndAnotherBetter) {
    Trial trial = two_counters();
    std::optional<TrialVerdict> verdict;
    while (!verdict) verdict = trial.add(of(-0.05, 0.05));
    EXPECT_EQ(verdict->outcome, TrialOutcome::regressed);
    EXPECT_EQ(verdict->standing.counter, "tail");
}

TEST(Trial, DoesNotImproveWhileAnotherCounterMayBeWorse) {
    // The first is better throughout. The second went up at first: its evidence is above 1 until it fell.
    Trial trial = two_counters();
    for (int i = 0; i < 4; i++) EXPECT_FALSE(trial.add(of(-0.05, 0.05)));
    for (int i = 0; i < 3; i++) EXPECT_FALSE(trial.add(of(-0.05, 0))) << "enough by itself, but vetoed";
    const Standing vetoed = trial.standing();
    EXPECT_EQ(vetoed.counter, "latency") << "nearest to deciding";
    EXPECT_GT(evidence_of(vetoed.log_improved), 40);
    std::optional<TrialVerdict> verdict;
    while (!verdict) verdict = trial.add(of(-0.05, -0.05));
    EXPECT_EQ(verdict->outcome, TrialOutcome::improved);
    EXPECT_EQ(verdict->standing.counter, "latency");
}

TEST(Trial, ImprovesBesideACounterThatIsLevel) {
    Trial trial = two_counters();
    std::optional<TrialVerdict> verdict;
    while (!verdict) verdict = trial.add(of(0, -0.05));
    EXPECT_EQ(verdict->outcome, TrialOutcome::improved) << "evidence of exactly 1 is not above 1";
    EXPECT_EQ(verdict->standing.pairs, 7U);
}

TEST(Trial, DropsThinPairsWithoutLookingAtTheirValues) {
    JudgeSettings settings;
    settings.min_items = 1200;
    Trial trial = one_counter(settings);
    WindowPair thin{{{1, kNaN}}, 2399};
    EXPECT_EQ(trial.why_dropped(thin), "too few items");
    EXPECT_FALSE(trial.add(thin));
    WindowPair enough{{{1, 1.1}}, 2400};
    EXPECT_EQ(trial.why_dropped(enough), "");
    EXPECT_FALSE(trial.add(enough));
    EXPECT_EQ(trial.standing().pairs, 1U);
    EXPECT_THAT(trial.dropped(), ElementsAre(Pair("too few items", 1U)));
}

TEST(Trial, DropsPairsWithValuesThatAreNone) {
    Trial trial = two_counters();
    for (const double bad : {kNaN, kInfinity, 0.0, -0.0, -1.0}) {
        EXPECT_FALSE(trial.add({{{1, 1}, {bad, 1}}, {}}));
        EXPECT_FALSE(trial.add({{{1, 1}, {1, bad}}, {}}));
    }
    EXPECT_FALSE(trial.add({{{1, 1}}, {}}));
    EXPECT_THAT(trial.dropped(), ElementsAre(Pair("not all counters were read", 1U),
                                             Pair("tail is not a positive number", 10U)));
    EXPECT_EQ(trial.standing().pairs, 0U);
}

TEST(Trial, IsAsIfDroppedPairsHadNotBeen) {
    Trial with = one_counter(), without = one_counter();
    for (const double d : {0.05, -0.02, 0.03}) {
        with.add({{{1, 0}}, {}});
        with.drop("suspend");
        with.add(of(d));
        without.add(of(d));
    }
    EXPECT_EQ(with.standing().log_regressed, without.standing().log_regressed);
    EXPECT_EQ(with.standing().pairs, 3U) << "nor do they count towards max_pairs";
    EXPECT_THAT(with.dropped(), testing::Contains(Pair("suspend", 3U)));
    EXPECT_THAT(without.dropped(), IsEmpty());
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
    for (int i = 0; i < 16 && !verdict; i++) verdict = trial.add({{{least, most}}, {}});
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->standing.effect.percent, most);
    EXPECT_TRUE(std::isfinite(verdict->standing.log_regressed));
}

}  // namespace
}  // namespace wq
