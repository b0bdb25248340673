// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "counters/counter_table.h"
#include "evidence/comparison.h"
#include "noise.h"

namespace wq {
namespace {

using Values = std::vector<std::optional<PairValues>>;

const ComparedCounter kLatency{.name = "latency"};
const ComparedCounter kTail{.name = "tail"};
const ComparedCounter kThroughputGuard{
    .name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true};

Values cost(double d) {
    return {PairValues{1, std::exp(d)}};
}

Comparison after(std::vector<ComparedCounter> counters, const Values& values, unsigned times) {
    Comparison out(counters);
    while (times-- > 0) out.add(values);
    return out;
}

// The mean over all stakes, and that over the large ones.
using Log = double (EProcess::*)() const;
constexpr Log kLogs[] = {&EProcess::log, &EProcess::log_of_large_stakes};

TEST(EProcess, IsTheMeanOverItsStakes) {
    // r is 0.1, 0.1 and sqrt(0.06 / 3), so x/r is 1, -1 and sqrt(2).
    EProcess process;
    for (const double x : {0.1, -0.1, 0.2}) process.add(x);
    const auto e = [](double k) {
        return 8 / ((1 + std::exp(-k)) * (1 + std::exp(k)) * (1 + std::exp(-k * std::sqrt(2))));
    };
    double mean = 0;
    for (const double stake : kStakes) mean += e(stake) / 7;
    EXPECT_NEAR(std::exp(process.log()), mean, 1e-12);
    EXPECT_NEAR(std::exp(process.log_of_large_stakes()), (e(0.5) + e(1) + e(2) + e(4) + e(8)) / 5, 1e-12);
    EXPECT_NEAR(std::exp(process.log_of_large_stakes()), 0.6922040974642341, 1e-12);
}

TEST(EProcess, TwoSignsOfOneSizeAreAFairBet) {
    for (const Log log : kLogs)
        for (const double size : {1e-9, 0.01, 0.5, 30.0, 1e9}) {
            EProcess before;
            for (const double x : {0.05, -0.02, 0.3}) before.add(x);
            EProcess up = before;
            EProcess down = before;
            up.add(size);
            down.add(-size);
            EXPECT_NEAR(std::exp((up.*log)()) + std::exp((down.*log)()), 2 * std::exp((before.*log)()), 1e-9);
        }
}

TEST(EProcess, GoesOnFromItsStateAndDoesNotDependOnTheUnit) {
    EProcess whole;
    EProcess first;
    EProcess small;
    for (const double x : {0.3, -0.1, 0.2}) whole.add(x), first.add(x), small.add(x * 1e-12);
    EXPECT_NEAR(small.log(), whole.log(), 1e-12);
    EProcess second(first);
    whole.add(0.7);
    second.add(0.7);
    EXPECT_EQ(whole, second);
}

TEST(EProcess, TiesAndLargeNumbersAreNoTrouble) {
    for (const Log log : kLogs) {
        EProcess process;
        process.add(0);
        EXPECT_EQ((process.*log)(), 0) << "r is 0: exactly 1, not NaN";
        process.add(0.1);
        const double after = (process.*log)();
        process.add(0);
        EXPECT_DOUBLE_EQ((process.*log)(), after) << "0/r is 0, a factor of 1";
        for (const double x : {-0.1, -1e150, 1e150})
            for (int i = 0; i < 50'000; i++) process.add(x);
        EXPECT_TRUE(std::isfinite((process.*log)()));
        process.add(-700);
        EXPECT_TRUE(std::isfinite((process.*log)()));
    }
}

TEST(Comparison, AGuardCanOnlyVeto) {
    const ComparedCounter guard{.name = "cpu", .tolerance = 0.05, .guard = true};
    const auto better = after({kLatency, guard}, {PairValues{1, 1}, PairValues{2, 1}}, 64);
    EXPECT_EQ(better.decide({}).judgement, Judgement::undecided) << "a guard that is better decides nothing";
    const auto worse = after({kLatency, guard}, {PairValues{2, 1}, PairValues{1, 1.2}}, 64);
    EXPECT_EQ(worse.decide({}).judgement, Judgement::regressed);
    EXPECT_EQ(worse.decide({}).counter, "cpu");
    const auto tolerated = after({kLatency, guard}, {PairValues{2, 1}, PairValues{1, 1.04}}, 64);
    EXPECT_EQ(tolerated.decide({}).judgement, Judgement::improved);
}

TEST(Comparison, AMissingGuardDropsItsOwnValueOnly) {
    auto some = after({kLatency, kThroughputGuard}, {PairValues{2, 1}, std::nullopt}, 16);
    EXPECT_EQ(some.decide({}).judgement, Judgement::improved);
    EXPECT_EQ(some.columns()[1].worse.count, 0U);
    EXPECT_EQ(some.why_refused({std::nullopt, PairValues{1, 1}}), "latency was not read");
    some.add({PairValues{2, 1}, PairValues{2, 1}});
    EXPECT_EQ(some.decide({}).judgement, Judgement::undecided);
    EXPECT_EQ(some.decide({}).veto, "throughput");
    auto judged = after({{.name = "enqueue"}, kLatency}, {std::nullopt, PairValues{2, 1}}, 16);
    EXPECT_EQ(judged.decide({}).judgement, Judgement::improved) << "also one that is judged";
    for (int i = 0; i < 2; i++) judged.add_lost_window(Side::candidate);
    EXPECT_EQ(judged.columns()[0].worse.count, 0U) << "nothing is known of it";
}

// The losses set the scale, so one of them takes more evidence than nine gains give. (The rule of the plain
// sum decides nothing here. ImprovesByAnyCounterThatHasAllThatItNeeds fails without it.)
TEST(Comparison, ManySmallGainsDoNotHideAFewLargeLosses) {
    Comparison mixed({kLatency});
    for (int i = 0; i < 500; i++) mixed.add(cost(i % 10 == 9 ? std::log(1.5) : std::log(0.98)));
    EXPECT_NE(mixed.decide({}).judgement, Judgement::improved);
    // With losses as small as the gains the evidence suffices.
    Comparison level({kLatency});
    for (int i = 0; i < 500; i++) level.add(cost(i % 10 == 9 ? std::log(1.02) : std::log(0.98)));
    EXPECT_EQ(level.decide({}).judgement, Judgement::improved);
}

TEST(Comparison, ImprovesByAnyCounterThatHasAllThatItNeeds) {
    Comparison two({kTail, kLatency});
    two.add({PairValues{1000, 1010}, PairValues{1, 0.95}});  // tail: the loss exceeds the sum of tail's gains
    for (int i = 1; i < 40; i++) two.add({PairValues{1, 0.95}, PairValues{1, i % 5 == 0 ? 1.05 : 0.95}});
    const auto& columns = two.columns();
    ASSERT_GT(log_mean(columns[0].better.logs), log_mean(columns[1].better.logs)) << "tail is nearest";
    EXPECT_EQ(two.decide({}).judgement, Judgement::improved);
    EXPECT_EQ(two.decide({}).counter, "latency");
    Comparison one({kTail});
    one.add({PairValues{1000, 1010}});
    for (int i = 1; i < 40; i++) one.add({PairValues{1, 0.95}});
    EXPECT_EQ(one.decide({}).judgement, Judgement::undecided) << "by tail alone";
}

TEST(Comparison, LatencyAloneIsNoHarmWhileThroughputIsBetter) {
    const Values faster{PairValues{1, 1.3}, PairValues{1, 1.3}};
    EXPECT_EQ(after({kLatency, kThroughputGuard}, faster, 40).decide({}).judgement, Judgement::undecided);
    const Values slower{PairValues{1, 1.3}, PairValues{1, 1}};
    EXPECT_EQ(after({kLatency, kThroughputGuard}, slower, 40).decide({}).judgement, Judgement::regressed);
    const Values tails{PairValues{1, 1.3}, PairValues{1, 1.3}, PairValues{1, 1.3}};
    EXPECT_EQ(after({kLatency, kTail, kThroughputGuard}, tails, 40).decide({}).counter, "tail");
}

TEST(Comparison, ALostWindowCountsAgainstTheArmThatRanInIt) {
    auto candidate = after({kLatency}, cost(-0.05), 20);
    const double before = candidate.decide({}).log_better;
    candidate.add_lost_window(Side::candidate);
    EXPECT_LT(candidate.decide({}).log_better, before);
    EXPECT_NEAR(candidate.columns()[0].last.back(), 0.05, 1e-12);
    auto reference = after({kLatency}, cost(0.05), 5);
    const double worse = reference.decide({}).log_worse;
    reference.add_lost_window(Side::reference);
    EXPECT_LT(reference.decide({}).log_worse, worse);
}

// A lost window is expensive, but does not raise the cost of windows that are lost later.
TEST(Comparison, LostWindowsDoNotRaiseTheUsualCost) {
    auto one = after({kLatency}, cost(0), 15);
    one.add(cost(std::log(20)));
    for (int i = 0; i < 100; i++) one.add_lost_window(Side::reference);
    const auto& column = one.columns()[0];
    EXPECT_LT(column.reference_cost / 116, 20 * 35.0 / 16);
    EXPECT_LT(column.candidate_cost / 116, 35.0 / 16);
}

// There is no earlier difference to use for it. So a candidate that starves its load from the start is found
// too.
TEST(Comparison, AFirstWindowThatIsLostCountsAsAThird) {
    Comparison none({kLatency, kThroughputGuard});
    for (int i = 0; i < 12; i++) none.add_lost_window(Side::candidate);
    EXPECT_NEAR(none.columns()[0].last.front(), std::log(3), 1e-12);
    EXPECT_EQ(none.columns()[1].worse.count, 0U) << "a guard that was not read yet";
    EXPECT_EQ(none.decide({}).judgement, Judgement::regressed);
}

TEST(Comparison, RefusesWhatIsNotAPositiveNumber) {
    const Comparison one({kLatency});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    for (const PairValues& bad : {PairValues{0, 1}, PairValues{1, -1}, PairValues{nan, 1},
                                  PairValues{1, infinite}, PairValues{1e61, 1}, PairValues{1, 1e-61}})
        EXPECT_EQ(one.why_refused({bad}), "latency is not a number above 0, or out of range");
    EXPECT_EQ(one.why_refused({}), "not all counters were read");
    Comparison untouched({kLatency});
    untouched.add({PairValues{0, 1}});
    EXPECT_EQ(untouched.columns()[0].worse.count, 0U);
}

// The number in a user's file can be 0.
TEST(Comparison, AZeroBesideALargerValueCountsAsAThirdOfIt) {
    const ComparedCounter errors{.name = "file:/errors"};
    const ComparedCounter rate{.name = "file:/rps", .higher_is_better = true};
    for (const double value : {1e-6, 1.0, 1e9}) {
        EXPECT_DOUBLE_EQ(log_ratio(errors, {kZeroReading, value}), std::log(3));
        EXPECT_DOUBLE_EQ(log_ratio(errors, {value, kZeroReading}), -std::log(3));
        EXPECT_DOUBLE_EQ(log_ratio(rate, {value, kZeroReading}), std::log(3));
        EXPECT_DOUBLE_EQ(log_ratio(rate, {kZeroReading, value}), -std::log(3));
    }
    EXPECT_EQ(log_ratio(errors, {kZeroReading, kZeroReading}), 0);
    EXPECT_EQ(after({errors}, {PairValues{5, kZeroReading}}, 16).decide({}).judgement, Judgement::improved);
    EXPECT_EQ(after({errors}, {PairValues{kZeroReading, 5}}, 16).decide({}).judgement, Judgement::regressed);
}

double percent(double d) {
    return 100 * std::expm1(d);
}

// The interval by its definition: sorts the averages of each two values and takes the C-th from each end.
Effect::Interval by_definition(const std::vector<double>& d, std::size_t c) {
    std::vector<double> averages;
    for (std::size_t i = 0; i < d.size(); i++)
        for (std::size_t j = i; j < d.size(); j++) averages.push_back((d[i] + d[j]) / 2);
    std::sort(averages.begin(), averages.end());
    return {percent(averages[c - 1]), percent(averages[averages.size() - c])};
}

std::vector<double> some(std::size_t n, Random& random) {
    std::vector<double> out;
    while (out.size() < n) out.push_back(0.02 + 0.03 * random.normal());
    return out;
}

TEST(Effect, IsToldInWords) {
    struct Case {
        Effect effect;
        const char* text;
    };
    const auto with = [](double percent, double low, double high) {
        return Effect{percent, Effect::Interval{low, high}};
    };
    for (const auto& [effect, text] :
         {Case{with(-31.2, -36.8, -24.04), "31% better (24 to 37)"},
          Case{with(4, 1, 7.02), "4% worse (1 to 7)"},
          Case{with(-2, -5, 1), "2% better (1% worse to 5% better)"},
          Case{with(2.34, -0.96, 5.5), "2.3% worse (0.96% better to 5.5% worse)"},
          Case{with(1, -5, -2), "1% worse (5% better to 2% better)"},
          Case{with(0, -1, 5), "no difference (1% better to 5% worse)"},
          Case{with(-3, -5, 0), "3% better (no difference to 5% better)"},
          Case{with(0, 0, 0), "no difference"}, Case{{0.004, {}}, "no difference"},
          Case{{-0.052, {}}, "0.052% better"}, Case{{99.4, {}}, "99% worse"}, Case{{99.6, {}}, "100% worse"},
          Case{{123.6, {}}, "120% worse"}, Case{{99'960, {}}, "100000% worse"},
          Case{{2.5e7, {}}, "2.5e+07% worse"}})
        EXPECT_EQ(effect_text(effect), text);
}

TEST(Effect, IsTheMedianInPercent) {
    EXPECT_EQ(effect_of({}).percent, 0);
    EXPECT_DOUBLE_EQ(effect_of({std::log(1.05)}).percent, percent(std::log(1.05)));
    EXPECT_DOUBLE_EQ(effect_of({0.5, -0.1, 0.02}).percent, percent(0.02));
    EXPECT_DOUBLE_EQ(effect_of({0.5, -0.1, 0.02, 0.04}).percent, percent(0.03));
}

TEST(Effect, HasTheIntervalOfTheSignedRankTestFromSixPairs) {
    EXPECT_FALSE(effect_of({1, 2, 3, 4, 5}).interval);
    // C is the value in the published tables of Wilcoxon's test (two-sided 5%: 0, 2, 8, 29, 52) plus 1.
    Random random(1);
    for (const auto& [n, c] : {std::pair{6, 1}, {7, 3}, {10, 9}, {16, 30}, {20, 53}}) {
        const auto d = some(n, random);
        const auto expected = by_definition(d, c);
        const auto interval = effect_of(d).interval;
        EXPECT_DOUBLE_EQ(interval->low, expected.low) << n;
        EXPECT_DOUBLE_EQ(interval->high, expected.high) << n;
    }
}

TEST(Effect, CoversTheTruthAsOftenAsItSays) {
    Random random(2);
    for (const std::size_t n : {6U, 16U, 80U}) {
        unsigned covered = 0;
        constexpr unsigned runs = 2000;
        for (unsigned i = 0; i < runs; i++) {
            const auto interval = effect_of(some(n, random)).interval;
            covered += interval->low <= percent(0.02) && percent(0.02) <= interval->high ? 1 : 0;
        }
        EXPECT_GT(covered, 0.94 * runs) << n;
        EXPECT_LT(covered, 0.98 * runs) << n;
    }
}

TEST(Effect, TheMeanHasTheNormalIntervalFromSixteenPairs) {
    for (const auto& [sums, text] : std::vector<std::pair<DifferenceSums, std::string>>{
             {{}, "no difference"},
             {{15, -1.5, 0.2}, "9.5% better"},
             {{16, -1.6, 0.16}, "9.5% better (9.5 to 9.5)"},
             {{100, -37, 14.6}, "31% better (30 to 32)"},
             {{100, 1, 1.01}, "1% worse (0.99% better to 3% worse)"}})
        EXPECT_EQ(effect_text(mean_effect_of(sums)), text) << sums.pairs;
    Random random(4);
    int covered = 0;
    for (int i = 0; i < 2000; i++) {
        DifferenceSums sums;
        for (int pair = 0; pair < 16; pair++) {
            const double d = -0.2 + 0.05 * random.normal();
            sums.add({1, d, d * d});
        }
        const auto interval = mean_effect_of(sums).interval.value();
        const double truth = 100 * std::expm1(-0.2);
        covered += interval.low <= truth && truth <= interval.high ? 1 : 0;
    }
    EXPECT_NEAR(covered, 1900, 40);
}

TEST(Effect, SurvivesTiesAndExtremes) {
    const auto level = effect_of(std::vector<double>(16, 0.0));
    EXPECT_EQ(level.percent, 0);
    EXPECT_EQ(level.interval->low, 0);
    EXPECT_EQ(level.interval->high, 0);
    const auto wild = effect_of({-1454, -1454, -1454, 1454, 1454, 1454, 1454});
    EXPECT_EQ(wild.percent, std::numeric_limits<double>::max());
    EXPECT_EQ(wild.interval->low, -100);
}

TEST(Effect, OfTenThousandPairsIsFound) {
    Random random(3);
    const auto interval = effect_of(some(10'000, random)).interval;
    EXPECT_NEAR(interval->low, 1.96, 0.1);
    EXPECT_NEAR(interval->high, 2.08, 0.1);
}

}  // namespace
}  // namespace wq
