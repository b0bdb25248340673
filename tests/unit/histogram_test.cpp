// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "bpf/bpf_shared.h"

namespace wq {
namespace {

TEST(Histogram, BucketsAscendWithoutGapsAndStayInTheirRange) {
    unsigned before = 0;
    for (std::uint64_t ns = 1; ns < 100'000; ns++) {
        const unsigned bucket = wq_bucket(ns);
        ASSERT_GE(bucket, before) << ns;
        ASSERT_LE(bucket, before + 1) << ns;
        before = bucket;
    }
    for (int octave = 17; octave < 64; octave++) {
        const std::uint64_t power = std::uint64_t{1} << octave;
        const unsigned step = octave <= 40 ? 1 : 0;
        EXPECT_EQ(wq_bucket(power), std::min<unsigned>(wq_bucket(power - 1) + step, WQ_BUCKETS - 1))
            << octave;
    }
    EXPECT_EQ(wq_bucket(~std::uint64_t{0}), WQ_BUCKETS - 1U);
}

TEST(Histogram, WhatItSaysOfOneValueIsThatValueToOnePercent) {
    for (double value = 1; value < 1e12; value *= 1.003) {
        const auto ns = static_cast<std::uint64_t>(value);
        Histogram one;
        one.add(wq_bucket(ns), 1);
        const double limit = ns < 128 ? 0.5 : 0.004 * static_cast<double>(ns);
        EXPECT_NEAR(one.percentile(0.99), static_cast<double>(ns), limit);
    }
}

TEST(Histogram, PercentilesOfALongTailAreThoseOfTheSortedValues) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> waits(std::log(20'000), 1.5);
    std::vector<std::uint64_t> values(50'000);
    Histogram histogram;
    for (auto& value : values) {
        value = static_cast<std::uint64_t>(waits(random));
        histogram.add(wq_bucket(value), 1);
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(histogram.items(), values.size());
    for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999}) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * 50'000)) - 1;
        const auto exact = static_cast<double>(values[rank]);
        EXPECT_NEAR(histogram.percentile(share), exact, 0.01 * exact) << share;
    }
}

TEST(Histogram, NothingCountedIsZero) {
    EXPECT_EQ(Histogram().percentile(0.99), 0);
}

TEST(Histogram, OfFewerBucketsIsAsExactAsTheyAreWide) {
    for (double ns = 1; ns < 1e12; ns = ns * 1.07 + 1) {
        Histogram one(3);
        one.add(wq_bucket_by(static_cast<std::uint64_t>(ns), 3), 1);
        EXPECT_NEAR(one.percentile(0.5), ns, ns / 8 + 1);
    }
    EXPECT_EQ(wq_bucket_by(~std::uint64_t{0}, 3), WQ_TIME_BUCKETS - 1U);
}

TEST(Histogram, MeanIsThatOfTheValues) {
    Histogram exact(3), wide(3);
    EXPECT_EQ(exact.mean(), 0);
    exact.add(2, 1);
    exact.add(6, 3);
    EXPECT_EQ(exact.mean(), 5);
    for (const std::uint64_t ns : {1000U, 20'000U, 3'000'000U}) wide.add(wq_bucket_by(ns, 3), 1);
    EXPECT_NEAR(wide.mean(), 1'007'000, 1'007'000 / 16.0);
}

}  // namespace
}  // namespace wq
