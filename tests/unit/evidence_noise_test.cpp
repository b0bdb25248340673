// SPDX-License-Identifier: LGPL-2.1-or-later
// Evidence under simulated noise: is the error rate within alpha, and are real effects found? Seeds are
// fixed. If a rate has an upper bound, the test also requires that it is not zero: a rule that never decides
// would pass otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "evidence/comparison.h"
#include "noise.h"

namespace wq {
namespace {

constexpr unsigned kRuns = 4'000;
constexpr double kThreshold = 60;

NewNoise ar(double deviation, double memory = 0.5) {
    return [=] { return autoregressive(deviation, memory); };
}

// d of one pair: two adjacent windows in random order.
double pair_of(const Noise& noise, double effect, Random& random) {
    const bool candidate_first = random.coin();
    double reference = noise(random);
    double candidate = noise(random);
    if (candidate_first) std::swap(reference, candidate);
    return candidate - reference + effect;
}

// For each of kRuns e-processes, sorted: the pairs until it reached kThreshold; MOST + 1 if it did not.
std::vector<unsigned> pairs_to_find(const NewNoise& anew, double effect, unsigned most, std::uint64_t seed) {
    Random random(seed);
    std::vector<unsigned> out;
    for (unsigned run = 0; run < kRuns; run++) {
        const Noise noise = anew();
        EProcess process;
        unsigned pairs = 0;
        while (pairs++ < most) {
            process.add(pair_of(noise, effect, random));
            if (process.log() >= std::log(kThreshold)) break;
        }
        out.push_back(pairs);
    }
    std::sort(out.begin(), out.end());
    return out;
}

double share_within(const std::vector<unsigned>& sorted, unsigned pairs) {
    const auto found = std::upper_bound(sorted.begin(), sorted.end(), pairs) - sorted.begin();
    return static_cast<double>(found) / static_cast<double>(sorted.size());
}

// The design's figures. An effect of 5% is a mean d of 0.05.
TEST(EvidencePower, ThreePercentNoise) {
    const auto five = pairs_to_find(ar(0.03), 0.05, 256, 11);
    EXPECT_EQ(share_within(five, 256), 1.0);
    EXPECT_EQ(five[kRuns / 2], 9U);
    EXPECT_NEAR(share_within(pairs_to_find(ar(0.03), 0.02, 64, 12), 64), 0.97, 0.02);
    EXPECT_NEAR(share_within(pairs_to_find(ar(0.03), 0.01, 256, 13), 256), 0.98, 0.02);
}

TEST(EvidencePower, TenPercentNoise) {
    const auto five = pairs_to_find(ar(0.10), 0.05, 256, 14);
    EXPECT_NEAR(share_within(five, 16), 0.11, 0.02);
    EXPECT_NEAR(share_within(five, 64), 0.75, 0.02);
    EXPECT_EQ(share_within(five, 256), 1.0);
}

// A load with noise, whose candidate multiplies its cost by `factor`. By the rule of `ab` unless RULE says
// otherwise.
struct Load {
    NewNoise noise;
    double factor = 1;
    double tolerance = 0;
    DecisionRule rule = {.quick = true};
    unsigned most = 16;  // pairs
    bool coin = true;    // else the baseline is always first
};

// The verdicts of many trials.
struct Tally {
    double regressed = 0;  // shares
    double improved = 0;
    std::vector<std::uint64_t> pairs;  // of each trial with a verdict
    [[nodiscard]] std::uint64_t median_pairs() {
        std::ranges::sort(pairs);
        return pairs[pairs.size() / 2];
    }
};

Decision judged(const Load& load, Random& random) {
    const Noise noise = load.noise();
    Comparison comparison(std::vector<ComparedCounter>{{"latency", false, load.tolerance, false}});
    for (;;) {
        const bool candidate_first = load.coin && random.coin();
        double reference = std::exp(noise(random));
        double candidate = std::exp(noise(random));
        if (candidate_first) std::swap(reference, candidate);
        comparison.add({PairValues{reference, candidate * load.factor}});
        const Decision at = comparison.decide(load.rule);
        if (at.judgement != Judgement::undecided || at.pairs >= load.most) return at;
    }
}

Tally judged(const Load& load, unsigned trials, std::uint64_t seed) {
    Random random(seed);
    Tally out;
    for (unsigned i = 0; i < trials; i++) {
        const Decision at = judged(load, random);
        if (at.judgement == Judgement::undecided) continue;
        (at.judgement == Judgement::regressed ? out.regressed : out.improved) += 1.0 / trials;
        out.pairs.push_back(at.pairs);
    }
    testing::Test::RecordProperty("regressed", std::to_string(out.regressed));
    testing::Test::RecordProperty("improved", std::to_string(out.improved));
    return out;
}

constexpr double kAlpha = DecisionRule().alpha;
constexpr unsigned kTrials = 10'000;

struct Named {
    const char* name;
    Noise (*noise)();
};
const Named kNoises[] = {
    {"Independent", [] { return independent(0.03); }},
    {"Memory", [] { return autoregressive(0.03, 0.5); }},
    {"LongMemory", [] { return autoregressive(0.03, 0.9); }},
    {"Drift", [] { return drifting(0.03, std::log1p(0.01)); }},
    {"LevelShifts", [] { return shifting(0.03, 0.2, 0.1); }},
    {"HeavyTails", [] { return student2(0.03); }},
};

class FalseDecisionsUnder : public testing::TestWithParam<Named> {};

TEST_P(FalseDecisionsUnder, AnyNoiseAreWithinAlpha) {
    for (const auto& [rule, most, trials] :
         {std::tuple(DecisionRule{}, 128U, kRuns), {DecisionRule{.quick = true}, 16U, kTrials}}) {
        const Tally tally = judged(Load{.noise = GetParam().noise, .rule = rule, .most = most}, trials, 21);
        EXPECT_LE(tally.regressed, kAlpha);
        EXPECT_LE(tally.improved, kAlpha);
        EXPECT_GT(tally.regressed, 0) << "one that never decides would pass";
    }
}
INSTANTIATE_TEST_SUITE_P(Noise, FalseDecisionsUnder, testing::ValuesIn(kNoises),
                         [](const auto& each) { return each.param.name; });

TEST(FalseDecisions, ExceedAlphaWithoutTheCoin) {
    const Load drift{.noise = kNoises[3].noise, .coin = false};
    EXPECT_GT(judged(drift, kRuns, 1).regressed, 1.5 * kAlpha) << "drift is taken for an effect";
}

TEST(FalseDecisions, AreWithinAlphaForAChangeThatCostsTheTolerance) {
    EXPECT_LE(judged({ar(0.03), 1.05, 0.05}, kTrials, 3).regressed, kAlpha);
    EXPECT_LE(judged({kNoises[5].noise, 1.03, 0.05}, kTrials, 3).regressed, kAlpha);
    EXPECT_GT(judged({ar(0.03), 1.05, 0.04}, kRuns, 3).regressed, kAlpha);
}

TEST(EvidencePower, FivePercentAreFoundWithinSixteenPairs) {
    Tally worse = judged({ar(0.03), 1.05}, kTrials, 5);
    EXPECT_GE(worse.regressed, 0.97);
    EXPECT_LE(worse.median_pairs(), 6U);
    EXPECT_EQ(worse.improved, 0);
    Tally better = judged({ar(0.03), 1 / 1.05}, kTrials, 6);
    EXPECT_GE(better.improved, 0.97);
    EXPECT_LE(better.median_pairs(), 6U);
    EXPECT_EQ(better.regressed, 0);
    // Pairs remove the noise that adjacent windows share. Independent windows share none.
    const Tally strangers = judged({kNoises[0].noise, 1.05}, kTrials, 7);
    EXPECT_GE(strangers.regressed, 0.88);
    EXPECT_LE(strangers.regressed, 0.93);
}

// Eight targets in one slot: while one of them runs its candidate, all others cost 2% more. Each has its own
// coin, so the influence of the others is noise.
TEST(FalseDecisions, AreWithinAlphaForEightTargetsThatDisturbEachOther) {
    constexpr unsigned kTargets = 8;
    constexpr unsigned kSlots = 500;
    const double threshold = kThreshold / 2;  // 1 / alpha for alpha = 3.3%
    Random random(22);
    unsigned wrong = 0;
    for (unsigned slot = 0; slot < kSlots; slot++) {
        std::vector<Noise> noise;
        std::vector<EProcess> processes(kTargets);
        for (unsigned t = 0; t < kTargets; t++) noise.push_back(autoregressive(0.03, 0.5));
        std::vector<bool> decided(kTargets);
        for (unsigned pair = 0; pair < 128; pair++) {
            std::vector<unsigned> first(kTargets);  // 1: the candidate runs in the first window
            for (unsigned& each : first) each = random.coin() ? 1 : 0;
            for (unsigned t = 0; t < kTargets; t++) {
                double cost[2] = {};
                for (unsigned window = 0; window < 2; window++) {
                    unsigned others = 0;
                    for (unsigned o = 0; o < kTargets; o++)
                        others += o != t && (first[o] == 1) == (window == 0);
                    cost[window] = noise[t](random) + others * std::log(1.02);
                }
                const double d = first[t] == 1 ? cost[0] - cost[1] : cost[1] - cost[0];
                processes[t].add(d);
                if (processes[t].log() >= std::log(threshold)) decided[t] = true;
            }
        }
        wrong += static_cast<unsigned>(std::count(decided.begin(), decided.end(), true));
    }
    const double share = static_cast<double>(wrong) / (kTargets * kSlots);
    RecordProperty("share", std::to_string(share));
    EXPECT_LE(share, 1 / threshold);
    EXPECT_GT(wrong, 0U);
}

constexpr double kRunLength = 20'000;
// Pairs until the watch raises an alarm; MOST + 1 if it does not. The effect is GOOD for QUIET pairs, then
// EFFECT.
unsigned pairs_to_alarm(const NewNoise& anew, double good, unsigned quiet, double effect, unsigned most,
                        Random& random) {
    const Noise noise = anew();
    EDetector detector;
    for (unsigned i = 0; i < quiet; i++) detector.add(pair_of(noise, good, random));
    unsigned pairs = 0;
    while (pairs++ < most) {
        detector.add(pair_of(noise, effect, random));
        if (detector.log() >= std::log(kRunLength)) break;
    }
    return pairs;
}

TEST(Watch, FindsHarmAfterTwoHundredGoodPairs) {
    struct Case {
        double harm;
        unsigned median;
    };
    for (const auto& [harm, median] : {Case{0.03, 30}, Case{0.05, 18}, Case{0.10, 16}}) {
        Random random(31);
        std::vector<unsigned> pairs;
        for (unsigned run = 0; run < 1'000; run++)
            pairs.push_back(pairs_to_alarm(ar(0.03), std::log(0.99), 200, std::log1p(harm), 1'000, random));
        std::sort(pairs.begin(), pairs.end());
        EXPECT_NEAR(pairs[500], median, 2) << harm;
    }
}

// Mean number of pairs per alarm of a watch on a change without an effect, over PAIRS pairs.
double run_length(double threshold, unsigned pairs, std::uint64_t seed) {
    Random random(seed);
    unsigned alarms = 0;
    EDetector detector;
    const Noise noise = autoregressive(0.03, 0.5);
    for (unsigned i = 0; i < pairs; i++) {
        detector.add(pair_of(noise, 0, random));
        if (detector.log() < std::log(threshold)) continue;
        alarms++;
        detector = {};
    }
    EXPECT_GT(alarms, 0U);
    return static_cast<double>(pairs) / std::max(1U, alarms);
}

TEST(Watch, TakesBackWhatDoesNothingOncePerRunLengthAtMost) {
    EXPECT_GE(run_length(1'000, 300'000, 32), 1'000);
    EXPECT_GE(run_length(kRunLength, 1'000'000, 33), kRunLength);
}

}  // namespace
}  // namespace wq
