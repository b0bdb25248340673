// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/verdicts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "evidence/e_process.h"
#include "policy/quantity.h"

namespace wq {
namespace {

TEST(LargeStakes, AreTheOnesComputedByHand) {
    // x = 0.1, -0.1, 0.2: r = 0.1, 0.1, sqrt(0.06 / 3), so x/r = 1, -1, sqrt(2), and for each k
    // E_k = 8 / ((1 + e^-k) (1 + e^k) (1 + e^(-k sqrt 2))). Their mean is 0.6922.
    EProcess e;
    EXPECT_EQ(e.log_of_large_stakes(), 0);
    e.add(0.1);
    EXPECT_NEAR(evidence_of(e.log_of_large_stakes()), 1.6863973710868734, 1e-12);
    e.add(-0.1);
    EXPECT_NEAR(evidence_of(e.log_of_large_stakes()), 0.4436857397845044, 1e-12);
    e.add(0.2);
    EXPECT_NEAR(evidence_of(e.log_of_large_stakes()), 0.6922040974642341, 1e-12);
    double sum = 0;
    for (const double k : {0.5, 1.0, 2.0, 4.0, 8.0})
        sum += 8 / ((1 + std::exp(-k)) * (1 + std::exp(k)) * (1 + std::exp(-k * std::sqrt(2))));
    EXPECT_NEAR(evidence_of(e.log_of_large_stakes()), sum / 5, 1e-12);
}

TEST(LargeStakes, AreAFairGame) {
    // For any history, the mean e-value over both signs of the next value equals the e-value before.
    for (const double next : {1e-9, 0.01, 0.2, 30.0}) {
        EProcess up;
        for (const double x : {0.05, -0.02, 0.3}) up.add(x);
        EProcess down = up;
        const double before = evidence_of(up.log_of_large_stakes());
        up.add(next);
        down.add(-next);
        EXPECT_NEAR((evidence_of(up.log_of_large_stakes()) + evidence_of(down.log_of_large_stakes())) / 2,
                    before, 1e-12);
    }
}

TEST(LargeStakes, DoNotDependOnTheUnit) {
    EProcess small, large;
    for (const double x : {0.1, -0.3, 0.2, 0.2}) {
        small.add(x * 1e-12);
        large.add(x * 1e3);
    }
    EXPECT_NEAR(small.log_of_large_stakes(), large.log_of_large_stakes(), 1e-12);
}

TEST(LargeStakes, AreUnmovedByTies) {
    EProcess e;
    for (int i = 0; i < 5; i++) e.add(0);
    EXPECT_EQ(e.log_of_large_stakes(), 0) << "r is 0: exactly 1, not NaN";
    e.add(0.1);
    const double after = e.log_of_large_stakes();
    EXPECT_GT(after, 0);
    e.add(0);
    EXPECT_DOUBLE_EQ(e.log_of_large_stakes(), after) << "0/r is 0, a factor of 1";
}

TEST(LargeStakes, StayNumbersFarBeyondTheDoubles) {
    EProcess huge, tiny;
    for (unsigned i = 0; i < kMaxPairs; i++) {
        huge.add(0.1);
        tiny.add(-0.1);
    }
    EXPECT_NEAR(huge.log_of_large_stakes(), kMaxPairs * std::log(2 / (1 + std::exp(-8))) - std::log(5), 1e-6);
    EXPECT_NEAR(tiny.log_of_large_stakes(), kMaxPairs * std::log(2 / (1 + std::exp(0.5))) - std::log(5),
                1e-6);
    EXPECT_EQ(evidence_of(huge.log_of_large_stakes()), std::numeric_limits<double>::max());
    EXPECT_EQ(evidence_of(tiny.log_of_large_stakes()), 0);
    tiny.add(700);  // x/r = 100, from an e-value of nearly 0
    EXPECT_TRUE(std::isfinite(tiny.log_of_large_stakes()));
    huge.add(-700);
    EXPECT_TRUE(std::isfinite(huge.log_of_large_stakes()));
}

TEST(JudgeSettings, AreReadStrictly) {
    EXPECT_EQ(*parse_alpha("0.5"), 0.5);
    EXPECT_EQ(*parse_alpha("1e-3"), 0.001);
    for (const char* bad : {"", "0", "-0", "0.51", "-0.1", "nan", "inf", "0.05x", " 0.05", "5%", "1e-400"})
        EXPECT_FALSE(parse_alpha(bad)) << bad;
    EXPECT_EQ(*parse_tolerance("5%"), 0.05);
    EXPECT_EQ(*parse_tolerance("0%"), 0);
    EXPECT_EQ(*parse_tolerance("100%"), 1);
    for (const char* bad : {"", "%", "5", "-1%", "100.1%", "nan%", "5%%", "5 %"})
        EXPECT_FALSE(parse_tolerance(bad)) << bad;
    EXPECT_EQ(*parse_max_pairs("10000"), 10000U);
    for (const char* bad : {"", "0", "10001", "-1", "1.5", "4294967297", "99999999999"})
        EXPECT_FALSE(parse_max_pairs(bad)) << bad;
    EXPECT_EQ(parse_max_pairs("0").error().text, "must be 1 to 10000");
    EXPECT_EQ(*parse_candidates("100"), 100U);
    EXPECT_EQ(parse_candidates("101").error().text, "candidates must be 1 to 100");
    EXPECT_EQ(*parse_run_length("1000000000"), 1'000'000'000U);
    EXPECT_EQ(parse_run_length("0").error().text, "run-length must be 1 to 1000000000");
}

}  // namespace
}  // namespace wq
