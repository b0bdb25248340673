// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bpf/bpf_shared.h"
#include "fake_monitor.h"

namespace wq::ctl {
namespace {

using testing::SizeIs;

WorkSample at(double seconds, std::vector<KernelWorkqueue> workqueues, std::vector<WorkTimes> times = {}) {
    WorkSample out;
    out.seconds = seconds;
    out.workqueues = std::move(workqueues);
    out.times = std::move(times);
    return out;
}

TEST(TopRates, TheFirstSampleIsNoInterval) {
    TopRates rates;
    EXPECT_FALSE(rates.add(at(1, {workqueue(1, "a", 5)})));
    EXPECT_TRUE(rates.add(at(2, {workqueue(1, "a", 5)})));
}

TEST(TopRates, RatesArePerSecondOfTheIntervalAsItWas) {
    TopRates rates;
    auto before = workqueue(1, "a", 100);
    auto after = workqueue(1, "a", 150);
    before.cpu_time_us = 1'000'000;
    after.cpu_time_us = 2'000'000;
    rates.add(at(10, {before}));
    const auto interval = rates.add(at(12.5, {after}));
    ASSERT_TRUE(interval);
    EXPECT_DOUBLE_EQ(interval->seconds, 2.5);
    const auto& row = interval->workqueues.at(0);
    EXPECT_EQ(row.items, 50U);
    EXPECT_DOUBLE_EQ(row.per_second, 20);
    EXPECT_DOUBLE_EQ(row.cpu.value(), 0.4);
    EXPECT_EQ(row.now.started, 150U);
    EXPECT_FALSE(row.reset);
}

TEST(TopRates, TwoOfOneNameAreTwo) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "events", 10), workqueue(2, "events", 1000)}));
    const auto interval = rates.add(at(2, {workqueue(2, "events", 1001), workqueue(1, "events", 15)}));
    ASSERT_THAT(interval->workqueues, SizeIs(2));
    EXPECT_EQ(interval->workqueues[0].items, 1U);
    EXPECT_EQ(interval->workqueues[1].items, 5U);
    EXPECT_EQ(interval->workqueues[0].id, 2U);
    EXPECT_EQ(interval->workqueues[1].id, 1U);
}

TEST(TopRates, PoolsSetAnewAreNoNegativeRate) {
    TopRates rates;
    auto before = workqueue(1, "a", 1000);
    before.cpu_time_us = 500;
    auto after = workqueue(1, "a", 750);  // one of four pools is gone
    after.pools = 77;
    after.cpu_time_us = 400;
    rates.add(at(1, {before}, {times(1, 100, 50)}));
    const auto row = rates.add(at(3, {after}, {times(1, 110, 50)}))->workqueues.at(0);
    EXPECT_TRUE(row.reset);
    EXPECT_EQ(row.items, 10U);
    EXPECT_DOUBLE_EQ(row.per_second, 5);
    EXPECT_FALSE(row.cpu);
    after.started = 760;
    after.cpu_time_us = 600;
    const auto later = rates.add(at(4, {after}, {times(1, 110, 50)}))->workqueues.at(0);
    EXPECT_FALSE(later.reset);
    EXPECT_TRUE(later.was_reset) << "its total is still younger than those of others";
    EXPECT_EQ(later.items, 10U) << "the kernel's count is good again";
    EXPECT_DOUBLE_EQ(later.cpu.value(), 200e-6);
}

// Items in flight keep an old pool on the list. When the pool goes, its count goes too.
TEST(TopRates, PoolsThatLingerAreNotCountedAgainWhenTheyLeave) {
    TopRates rates;
    auto lingers = workqueue(1, "a", 1010), gone = workqueue(1, "a", 10);
    lingers.pools = 77;
    gone.pools = 78;
    rates.add(at(1, {workqueue(1, "a", 1000)}, {times(1, 100, 50)}));
    EXPECT_EQ(rates.add(at(2, {lingers}, {times(1, 110, 50)}))->workqueues.at(0).items, 10U);
    EXPECT_EQ(rates.add(at(3, {gone}, {times(1, 112, 50)}))->workqueues.at(0).items, 2U);
}

TEST(TopRates, PoolsSetAnewWithoutWorkHadNone) {
    TopRates rates;
    auto after = workqueue(1, "a", 0);
    after.pools = 77;
    rates.add(at(1, {workqueue(1, "a", 10)}));
    EXPECT_EQ(rates.add(at(2, {after}))->workqueues.at(0).items, 0U);
}

// The new pools may have counted more than the old ones had.
TEST(TopRates, PoolsSetAnewShowWhereTheTotalGrewNonetheless) {
    TopRates rates;
    auto after = workqueue(1, "a", 500);
    after.pools = 77;
    rates.add(at(1, {workqueue(1, "a", 10)}, {times(1, 10, 50)}));
    const auto row = rates.add(at(2, {after}, {times(1, 510, 50)}))->workqueues.at(0);
    EXPECT_TRUE(row.reset);
    EXPECT_EQ(row.items, 500U);
    EXPECT_FALSE(row.cpu);
}

TEST(TopRates, AWorkqueueThatIsNewBeganWithNothing) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a", 7)}));
    const auto interval = rates.add(at(2, {workqueue(1, "a", 7), workqueue(2, "b", 3)}));
    EXPECT_EQ(interval->workqueues[1].items, 3U);
    EXPECT_FALSE(interval->workqueues[1].reset);
    // A new workqueue at an address that has become free.
    const auto next = rates.add(at(3, {workqueue(1, "c", 5)}));
    ASSERT_THAT(next->workqueues, SizeIs(1));
    EXPECT_EQ(next->workqueues[0].items, 5U);
    EXPECT_FALSE(next->workqueues[0].reset);
    EXPECT_EQ(next->workqueues[0].id, 3U);
}

TEST(TopRates, WaitsAreThoseOfTheInterval) {
    TopRates rates;
    const unsigned fast = wq_bucket_by(1000, kTimeBits);
    const unsigned slow = wq_bucket_by(1'000'000, kTimeBits);
    rates.add(at(1, {workqueue(1, "a")}, {times(1, 1000, fast, 50)}));
    auto now = times(1, 1000, fast, 50);
    now.waited[slow] = 10;
    now.queued += 4;
    now.lock_ns += 4000;
    const auto row = rates.add(at(2, {workqueue(1, "a")}, {now}))->workqueues.at(0);
    EXPECT_EQ(row.timed, 10U);
    EXPECT_NEAR(*row.p50, 1e6, 1e6 / 8);
    EXPECT_NEAR(*row.p99, 1e6, 1e6 / 8);
    EXPECT_DOUBLE_EQ(*row.lock, 1000);
}

TEST(TopRates, WithoutItemsThereIsNoWait) {
    TopRates rates;
    const auto same = at(1, {workqueue(1, "a"), workqueue(2, "b")}, {times(1, 10, 100, 50)});
    rates.add(same);
    auto later = same;
    later.seconds = 2;
    const auto interval = rates.add(later);
    ASSERT_EQ(interval->workqueues.size(), 2U);
    for (const auto& row : interval->workqueues) {
        EXPECT_EQ(row.timed, 0U);
        EXPECT_FALSE(row.p50 || row.p90 || row.p99 || row.lock);
    }
}

TEST(TopRates, BucketsWrapAround) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a")}, {times(1, 0xfffffff0U, 50)}));
    const auto interval = rates.add(at(2, {workqueue(1, "a")}, {times(1, 0x10U, 50)}));
    EXPECT_EQ(interval->workqueues.at(0).timed, 0x20U);
}

// The monitor drops the data of a workqueue that is gone; a new one at the same address starts at zero.
TEST(TopRates, WhatComesBackAtAnAddressIsTimedFromItsBeginning) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a")}, {times(1, 100, 50, 10)}));
    rates.add(at(2, {}, {times(1, 100, 50, 10)}));
    const auto row = rates.add(at(3, {workqueue(1, "a", 5)}, {times(1, 5, 50, 20)}))->workqueues.at(0);
    EXPECT_EQ(row.timed, 5U);
    EXPECT_DOUBLE_EQ(*row.lock, 20);
}

TEST(TopRates, FunctionsAreThoseWithItems) {
    TopRates rates;
    auto before = at(1, {workqueue(1, "a"), workqueue(2, "b")});
    before.functions = {{1, 10, "f", 100, 1'000'000'000}, {2, 10, "f", 5, 1}};
    auto after = before;
    after.seconds = 3;
    after.functions[0].items = 104;
    after.functions[0].busy_ns = 2'000'000'000;
    after.functions.push_back({2, 11, "g", 1, 500});
    after.functions.push_back({9, 11, "g", 1, 500});  // of a workqueue that is not on the list
    after.lost = 7;
    rates.add(before);
    const auto interval = rates.add(after);
    EXPECT_EQ(interval->lost, 7U);
    ASSERT_THAT(interval->functions, SizeIs(2));
    const auto& f = interval->functions[0];
    EXPECT_EQ(f.function + "@" + f.workqueue, "f@a");
    EXPECT_EQ(f.items, 4U);
    EXPECT_DOUBLE_EQ(f.per_second, 2);
    EXPECT_DOUBLE_EQ(f.busy, 0.5);
    EXPECT_DOUBLE_EQ(f.mean, 250e6);
    EXPECT_EQ(interval->functions[1].function + "@" + interval->functions[1].workqueue, "g@b");
}

}  // namespace
}  // namespace wq::ctl
