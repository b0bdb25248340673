// SPDX-License-Identifier: LGPL-2.1-or-later
// The conversion of the sums of the BPF programs into the counts of a window.
#include "bpf/work_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

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
    EXPECT_EQ(exact.mean() + exact.percentile(0.99), 0);
    exact.add(2, 1);
    exact.add(6, 3);
    EXPECT_EQ(exact.mean(), 5);
    for (const std::uint64_t ns : {1000U, 20'000U, 3'000'000U}) wide.add(wq_bucket_by(ns, 3), 1);
    EXPECT_NEAR(wide.mean(), 1'007'000, 1'007'000 / 16.0);
}

// Like wq_sums, with zero for each member that is not named.
struct Sums {
    std::uint64_t timed = 0, lock = 0, latency = 0, exec = 0;
    std::uint32_t stuck = 0, ended = 0, pending = 0, running = 0;
    operator wq_sums() const {  // NOLINT(google-explicit-constructor): for brevity
        return {timed, lock, latency, exec, stuck, ended, pending, running, {}};
    }
};

TEST(WorkSums, BecomeTheCountsOfAWindow) {
    const struct {
        const char* what;
        std::uint64_t queued;
        Sums sums;
        WorkCount is;
    } rows[] = {
        {"each item timed",
         3,
         {.timed = 3, .lock = 30, .latency = 600, .exec = 300, .stuck = 1, .ended = 3},
         {.items = 3, .latency = 200, .exec = 100, .stuck = 1}},
        {"what is open counts with its age, and without a start has no time from there",
         10,
         {.timed = 10, .latency = 1000, .exec = 90, .ended = 8, .pending = 1, .running = 1},
         {.items = 8, .latency = 100, .exec = 10, .unfinished = 2}},
        {"what neither ended nor is open was lost",
         10,
         {.timed = 10, .latency = 700, .ended = 6, .pending = 1},
         {.items = 6, .latency = 100, .unfinished = 1, .lost = 3}},
        {"the timed stand for the others",
         100'000,
         {.timed = 1000, .latency = 99'000, .stuck = 50, .ended = 980, .pending = 10},
         {.items = 98'000, .latency = 100, .stuck = 5000, .unfinished = 1000, .lost = 1000}},
        {"none timed is not none", 7, {}, {.items = 7}},
        // If items come just as the window ends, the two counts may differ by one.
        {"never more than were queued",
         2,
         {.timed = 3, .latency = 2, .stuck = 3, .ended = 1, .pending = 1},
         {.items = 0, .latency = 1, .stuck = 2, .unfinished = 1, .lost = 1}},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        const WorkCount count = count_of(row.queued, row.sums, Histogram());
        EXPECT_EQ(std::tuple(count.items, count.unfinished, count.lost, count.stuck, count.timed),
                  std::tuple(row.is.items, row.is.unfinished, row.is.lost, row.is.stuck, row.sums.timed));
        EXPECT_DOUBLE_EQ(count.latency, row.is.latency);
        EXPECT_DOUBLE_EQ(count.exec, row.is.exec);
        EXPECT_EQ(count.tail, 0);
        EXPECT_TRUE(std::isnan(count.throughput) && std::isnan(count.cpu));
    }
    Histogram waited;
    waited.add(wq_bucket(100), 3);
    const WorkCount count = count_of(3, rows[0].sums, waited);
    EXPECT_DOUBLE_EQ(count.lock, 10);
    EXPECT_NEAR(count.tail, 100, 1);
}

TEST(WorkSums, ProducersHaveAMeanAndAHistogram) {
    WorkCount count;
    set_enqueued(count, {});
    EXPECT_TRUE(std::isnan(count.enqueue)) << "not seen is not zero";
    EXPECT_TRUE(count.enqueued.empty());
    wq_enqueued times{.ns = 101'000, .items = {}};
    times.items[wq_bucket_by(1000, kTimeBits)] = 1;
    times.items[wq_bucket_by(100'000, kTimeBits)] = 1;
    set_enqueued(count, times);
    EXPECT_DOUBLE_EQ(count.enqueue, 50'500);
    ASSERT_EQ(count.enqueued.size(), WQ_TIME_BUCKETS);
    Histogram shown(kTimeBits);
    for (unsigned i = 0; i < count.enqueued.size(); i++) shown.add(i, count.enqueued[i]);
    EXPECT_NEAR(shown.percentile(0.5), 1000, 1000 / 8.0);
    EXPECT_NEAR(shown.percentile(0.99), 1e5, 1e5 / 8);
}

struct Statistics {
    // A window of two seconds, with 250 ticks per second.
    KernelLook before{1'000'000'000, 1000, {{}, {7, 400, 300, 80'000}}};
    KernelLook after{3'000'000'000, 1500, {{}, {7, 10'400, 10'200, 1'080'000}}};
    WorkCount count;
};

// NaN: not known.
TEST(StatisticsOfPools, AreKnownOrNot) {
    const double none = NAN;
    const struct {
        const char* what;
        void (*change)(Statistics& of);
        unsigned target;
        double throughput, cpu;
    } rows[] = {
        {"as they are", [](auto&) {}, 1, 5000, 100'000},
        {"200 ticks", [](auto& s) { s.after.of[1].cpu_time_us = 80'000 + 200 * 4000; }, 1, 5000, 80'000},
        {"fewer ticks", [](auto& s) { s.after.of[1].cpu_time_us = 80'000 + 199 * 4000; }, 1, 5000, none},
        {"nothing started", [](auto& s) { s.after.of[1].started = 400; }, 1, 0, none},
        // Followers of the default come and go, and their counts with them.
        {"backwards", [](auto& s) { s.after.of[1].started = 399; }, 1, none, none},
        {"pools were replaced", [](auto& s) { s.after.of[1].pools = 8; }, 1, none, none},
        {"a target without pools", [](auto&) {}, 0, none, none},
        {"no such target", [](auto&) {}, 2, none, none},
    };
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (const auto& [what, change, target, throughput, cpu] : rows) {
        Statistics of;
        change(of);
        add_statistics(of.count, of.before, of.after, target);
        EXPECT_TRUE(same(of.count.throughput, throughput)) << what;
        EXPECT_TRUE(same(of.count.cpu, cpu)) << what;
    }
}

// Unlike these, pools and kworkers are those of the window's end, also if the pools were replaced before.
TEST(StatisticsOfPools, PoolsAndWorkersAreThoseOfTheEnd) {
    for (const std::uint64_t hash : {7, 8}) {
        Statistics of;
        of.before.of[1].worker_pools = of.before.of[1].workers = 99;
        of.after.of[1].pools = hash;
        of.after.of[1].worker_pools = 12;
        of.after.of[1].workers = 31;
        add_statistics(of.count, of.before, of.after, 1);
        EXPECT_EQ(of.count.pools, 12U);
        EXPECT_EQ(of.count.workers, 31U);
    }
    Statistics of;
    add_statistics(of.count, of.before, of.after, 2);
    EXPECT_EQ(of.count.pools + of.count.workers, 0U) << "no such target";
}

}  // namespace
}  // namespace wq
