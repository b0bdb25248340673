// SPDX-License-Identifier: LGPL-2.1-or-later
// The conversion of the sums of the BPF programs into the counts of a window.
#include "bpf/work_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace wq {
namespace {

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
    KernelLook before{1'000'000'000, 1000, {{}, {7, 500, 400, 80'000}}};
    KernelLook after{3'000'000'000, 1500, {{}, {7, 10'500, 10'400, 1'080'000}}};
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
        {"nothing completed", [](auto& s) { s.after.of[1].completed = 400; }, 1, 0, none},
        // Followers of the default come and go, and their counts with them.
        {"backwards", [](auto& s) { s.after.of[1].completed = 399; }, 1, none, none},
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
