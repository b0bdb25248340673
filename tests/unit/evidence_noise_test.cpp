// SPDX-License-Identifier: LGPL-2.1-or-later
// Evidence under simulated noise: is the error rate within alpha, and are real effects found? Seeds are
// fixed. If a rate has an upper bound, the test also requires that it is not zero: a rule that never decides
// would pass otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "evidence/comparison.h"
#include "evidence/e_process.h"
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

// The share of comparisons that reach a verdict on a change without an effect, checked after each of PAIRS
// pairs.
struct Wrong {
    double regressed = 0;
    double improved = 0;
};

Wrong decided_wrongly(const NewNoise& anew, const DecisionRule& rule, unsigned pairs, std::uint64_t seed) {
    Random random(seed);
    Wrong out;
    for (unsigned run = 0; run < kRuns; run++) {
        const Noise noise = anew();
        Comparison comparison(std::vector<ComparedCounter>{{.name = "latency"}});
        for (unsigned i = 0; i < pairs; i++) {
            comparison.add({PairValues{1, std::exp(pair_of(noise, 0, random))}});
            const Judgement judgement = comparison.decide(rule).judgement;
            if (judgement == Judgement::undecided) continue;
            (judgement == Judgement::regressed ? out.regressed : out.improved) += 1.0 / kRuns;
            break;
        }
    }
    return out;
}

void expect_seldom_wrong(const NewNoise& noise) {
    const DecisionRule rule;
    const Wrong wrong = decided_wrongly(noise, rule, 128, 21);
    testing::Test::RecordProperty("regressed", std::to_string(wrong.regressed));
    testing::Test::RecordProperty("improved", std::to_string(wrong.improved));
    EXPECT_LE(wrong.regressed, rule.alpha);
    EXPECT_LE(wrong.improved, rule.alpha);
    EXPECT_GT(wrong.regressed, 0) << "one that never decides would pass";
}

TEST(FalseDecisions, AreWithinAlphaUnderIndependentNoise) {
    expect_seldom_wrong([] { return independent(0.03); });
}
TEST(FalseDecisions, AreWithinAlphaUnderNoiseWithMemory) {
    expect_seldom_wrong(ar(0.03, 0.5));
}
TEST(FalseDecisions, AreWithinAlphaUnderNoiseWithLongMemory) {
    expect_seldom_wrong(ar(0.03, 0.9));
}
TEST(FalseDecisions, AreWithinAlphaUnderDrift) {
    expect_seldom_wrong([] { return drifting(0.03, std::log1p(0.01)); });
}
TEST(FalseDecisions, AreWithinAlphaUnderLevelShifts) {
    expect_seldom_wrong([] { return shifting(0.03, 0.2, 0.1); });
}
TEST(FalseDecisions, AreWithinAlphaUnderHeavyTails) {
    expect_seldom_wrong([] { return student2(0.03); });
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
