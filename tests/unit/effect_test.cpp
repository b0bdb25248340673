// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "noise.h"

namespace wq {
namespace {

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

TEST(Effect, HasNoIntervalUnderSixPairsAndTheWholeRangeAtSix) {
    EXPECT_FALSE(effect_of({1, 2, 3, 4, 5}).interval);
    const auto interval = effect_of({0.06, 0.01, 0.05, -0.02, 0.03, 0.04}).interval;
    EXPECT_DOUBLE_EQ(interval->low, percent(-0.02));
    EXPECT_DOUBLE_EQ(interval->high, percent(0.06));
}

TEST(Effect, HasTheIntervalOfTheSignedRankTest) {
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
