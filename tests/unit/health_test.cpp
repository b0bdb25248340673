// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <random>

#include "fake_counters.h"
#include "fake_log.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::Pair;
using Looked = std::vector<KernelWorkqueue>;

// An unbound workqueue with COUNT items that started and ended, on pools POOLS.
KernelWorkqueue unbound(std::uint64_t address, const std::string& name, std::uint64_t count,
                        std::uint64_t pools = 1, std::uint64_t in_flight = 0) {
    return {.address = address,
            .name = name,
            .pools = pools,
            .in_sysfs = true,
            .unbound = true,
            .mem_reclaim = true,
            .started = count,
            .completed = count,
            .repatriated = count,
            .mayday = count,
            .rescued = count,
            .in_flight = in_flight,
            .all_completed = count};
}

KernelWorkqueue managed(std::uint64_t address, const std::string& name, std::uint64_t hogs) {
    return {.address = address, .name = name, .managed = true, .cpu_intensive = hogs};
}

struct Looks {
    Looked now;
    std::map<std::string, std::uint64_t> counts;  // expected afterwards
    const char* cpus = "0-7";
};

TEST(Health, CountsDoNotFallAndLoseNothingThatIsKnown) {
    const std::map<const char*, std::vector<Looks>> cases = {
        {"from the first look on",
         {{{unbound(1, "a", 100)}, {{"a", 0}}},
          {{unbound(1, "a", 130)}, {{"a", 30}}},
          {{unbound(1, "a", 130)}, {{"a", 30}}}}},
        {"a write replaced all pools: they began at zero, also if they have counted more than before",
         {{{unbound(1, "a", 100)}, {{"a", 0}}},
          {{unbound(1, "a", 20, 2)}, {{"a", 20}}},
          {{unbound(1, "a", 900, 3)}, {{"a", 920}}},
          {{unbound(1, "a", 901, 3)}, {{"a", 921}}}}},
        {"what falls on the same pools was zeroed",
         {{{unbound(1, "a", 100)}, {{"a", 0}}}, {{unbound(1, "a", 7)}, {{"a", 7}}}}},
        {"a CPU that goes or comes replaces some: only what is certain",
         {{{unbound(1, "a", 100)}, {{"a", 0}}},
          {{unbound(1, "a", 90, 2)}, {{"a", 0}}, "0-6"},
          {{unbound(1, "a", 95, 3)}, {{"a", 5}}, "0-7"},
          {{unbound(1, "a", 98, 3)}, {{"a", 8}}, "0-7"}}},
        {"a new workqueue began at zero",
         {{{unbound(1, "a", 100)}, {{"a", 0}}},
          {{unbound(1, "a", 100), unbound(2, "b", 9)}, {{"a", 0}, {"b", 9}}}}},
        {"one that went away and came back within a minute goes on",
         {{{unbound(1, "kcryptd", 100)}, {{"kcryptd", 0}}},
          {{unbound(1, "kcryptd", 150)}, {{"kcryptd", 50}}},
          {{unbound(2, "kcryptd", 3, 9)}, {{"kcryptd", 53}}}}},
        {"one that came back later begins anew, which a counter may",
         {{{unbound(1, "kcryptd", 100)}, {{"kcryptd", 0}}},
          {{unbound(1, "kcryptd", 150)}, {{"kcryptd", 50}}},
          {{}, {}},
          {{unbound(1, "kcryptd", 3)}, {{"kcryptd", 3}}}}},
        {"another one at the same address",
         {{{unbound(1, "a", 100)}, {{"a", 0}}}, {{unbound(1, "b", 200)}, {{"b", 200}}}}},
        {"two of one name are one",
         {{{unbound(1, "a", 100), unbound(2, "a", 5)}, {{"a", 0}}},
          {{unbound(1, "a", 110), unbound(2, "a", 6)}, {{"a", 11}}},
          {{unbound(2, "a", 8)}, {{"a", 13}}}}},
    };
    for (const auto& [name, looks] : cases) {
        SCOPED_TRACE(name);
        Health health;
        EXPECT_FALSE(health.has_looked);
        for (const Looks& look : looks) {
            health.add(look.cpus, look.now, 0);
            for (const Health::Count count : {Health::started, Health::completed, Health::repatriated,
                                              Health::maydays, Health::rescued}) {
                std::map<std::string, std::uint64_t> counts;
                for (const auto& [one, row] : health.rows) counts[one] = row.counts[count];
                EXPECT_EQ(counts, look.counts) << "count " << int{count};
            }
        }
        EXPECT_TRUE(health.has_looked);
    }
}

// Whoever writes, and whenever: as long as there is a look just before each write and no CPU comes or goes,
// the sum is exactly what was counted.
TEST(Health, AnyWritesThatFollowLooksAreLossless) {
    std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): repeatable
    Health health;
    std::uint64_t count = 1000, pools = 1, sum = 0;
    health.add("0-7", {unbound(1, "a", count, pools)}, 0);
    for (int i = 0; i < 10'000; i++) {
        const std::uint64_t more = random() % 3000;
        count += more;
        sum += more;
        health.add("0-7", {unbound(1, "a", count, pools)}, 0);
        ASSERT_EQ(health.rows.at("a").counts[Health::completed], sum);
        if (random() % 2 != 0) continue;
        pools++;
        count = 0;
    }
}

struct Glance {
    std::uint64_t minute, in_flight, completed, stalled;  // STALLED: expected, in minutes
};

TEST(Health, StalledIsTheTimeSinceTheFirstLookAtWhatDoesNotEnd) {
    const std::map<const char*, std::vector<Glance>> cases = {
        {"nothing in flight", {{0, 0, 5, 0}, {1, 0, 5, 0}, {2, 0, 5, 0}}},
        {"it hangs, and ends", {{0, 0, 5, 0}, {1, 3, 5, 0}, {2, 3, 5, 1}, {7, 3, 5, 6}, {8, 0, 8, 0}}},
        {"always busy, but items end", {{0, 9, 5, 0}, {1, 9, 6, 0}, {2, 9, 7, 0}, {3, 9, 7, 1}}},
        {"it hung before the first look", {{10, 1, 5, 0}, {11, 1, 5, 1}}},
        {"it hangs again later", {{0, 1, 5, 0}, {1, 1, 5, 1}, {2, 0, 6, 0}, {9, 1, 6, 0}, {10, 1, 6, 1}}},
    };
    for (const auto& [name, glances] : cases) {
        SCOPED_TRACE(name);
        Health health;
        for (const Glance& one : glances) {
            // Other pools at each look: that alone neither ends nor begins anything.
            health.add("0-7", {unbound(1, "a", one.completed, one.minute, one.in_flight)},
                       (one.minute + 1) * 60 * kSecond);
            EXPECT_EQ(health.rows.at("a").stalled, one.stalled * 60 * kSecond) << one.minute;
            EXPECT_EQ(health.rows.at("a").in_flight, one.in_flight);
        }
    }
}

TEST(Health, OfTenThousandTheFirstNamesKeepTheirSeries) {
    Looked now;
    for (std::uint64_t i = 0; i < 10'000; i++)
        now.push_back(unbound(i + 1, fmt::format("n{:05}", i), 10, 1, 1));
    Health health;
    health.add("", now, 1);
    for (KernelWorkqueue& one : now) one.started += 2;
    health.add("", now, 1 + 60 * kSecond);
    ASSERT_EQ(health.rows.size(), Health::kMostSeries);
    EXPECT_EQ(health.rows.begin()->first, "n00000");
    EXPECT_EQ(health.rows.rbegin()->first, "n00063");
    EXPECT_EQ(health.unnamed, 10'000 - Health::kMostSeries);
    EXPECT_EQ(health.others.counts[Health::started], 2 * health.unnamed);
    EXPECT_EQ(health.others.in_flight, health.unnamed);
    EXPECT_EQ(health.others.stalled, 60 * kSecond) << "the longest";

    now.push_back(unbound(20'000, "earlier", 4));
    health.add("", now, 0);
    EXPECT_FALSE(health.rows.contains("earlier")) << "those that were first keep theirs";
    EXPECT_EQ(health.others.counts[Health::started], 2 * (10'000 - Health::kMostSeries) + 4);

    std::erase_if(now, [](const KernelWorkqueue& one) { return one.name == "n00007"; });
    health.add("", now, 0);
    EXPECT_FALSE(health.rows.contains("n00007"));
    EXPECT_EQ(health.rows.at("earlier").counts[Health::started], 0U) << "its 4 stay in the sum";
    EXPECT_EQ(health.others.counts[Health::started], 2 * (10'000 - Health::kMostSeries) + 4);
}

TEST(Health, HogsByNameOfPerCpuWorkqueues) {
    Health health;
    health.add("", {managed(1, "events", 5)}, 0);
    EXPECT_THAT(health.hogs, ElementsAre(Pair("events", 0)));
    EXPECT_TRUE(health.rows.empty());
    health.add("", {managed(1, "events", 7), managed(2, "events", 1), managed(3, "kblockd", 2)}, 0);
    EXPECT_THAT(health.hogs, ElementsAre(Pair("events", 3), Pair("kblockd", 2)));
    health.add("", {}, 0);
    EXPECT_THAT(health.hogs, ElementsAre(Pair("events", 3), Pair("kblockd", 2)));
    Looked many;
    for (std::uint64_t i = 0; i < 100; i++) many.push_back(managed(i + 10, fmt::format("n{}", i), 1));
    health.add("", many, 0);
    EXPECT_EQ(health.hogs.size(), Health::kMostSeries + 1);
    EXPECT_EQ(health.hogs.at(Health::kOthers), 100 - (Health::kMostSeries - 2));
}

constexpr std::uint64_t kNever = 1'000'000 * kSecond;

class HealthWatchTest : public testing::Test {
  protected:
    HealthWatchTest() {
        counters_.healthy = [this]() -> Result<Looked> {
            now_ += took_;
            if (error_) return tl::unexpected(*error_);
            return Looked{unbound(1, "a", now_)};
        };
    }
    // Ticks every 15 s and writes every WRITES us, for SECONDS. Returns the number of looks.
    std::size_t run(std::uint64_t seconds, std::uint64_t writes = kNever) {
        const std::size_t before = counters_.asked.size();
        const std::uint64_t end = now_ + seconds * kSecond;
        std::uint64_t tick = now_, write = writes == kNever ? kNever : now_;
        while (std::min(tick, write) < end) {
            now_ = std::max(now_, std::min(tick, write));
            const bool ticks = tick <= write;
            watch_.look(counters_, !ticks);
            (ticks ? tick : write) += ticks ? 15 * kSecond : writes;
        }
        now_ = std::max(now_, end);
        return counters_.asked.size() - before;
    }

    test::TempTree tree_;
    Paths paths_{tree_.root()};
    test::FakeLog log_;
    test::FakeCounters counters_;
    std::uint64_t now_ = 1000 * kSecond;
    std::uint64_t took_ = 100;
    std::optional<Error> error_;
    HealthWatch watch_{paths_, log_, [this] { return now_; }};
};

TEST_F(HealthWatchTest, LooksOnceAMinuteAndBeforeWritesForAHundredthOfTheTimeAtMost) {
    watch_.look(counters_, true);
    EXPECT_TRUE(counters_.asked.empty()) << "nothing can be lost yet, and the programs are not loaded";
    EXPECT_EQ(run(3600), 60U);
    EXPECT_NEAR(static_cast<double>(run(3600, 2 * kSecond)), 1800, 2)
        << "writes are the minute's looks as well";
    took_ = 10'000;
    EXPECT_NEAR(static_cast<double>(run(600, 1000)), 590, 10) << "a write every millisecond";
    took_ = 2 * kSecond;
    EXPECT_LE(run(3600), 18U) << "a look of two seconds";
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(HealthWatchTest, SlotsThatFollowEachOtherDoNotPreventTheFirstLook) {
    for (int i = 0; i < 60; i++, now_ += 2 * kSecond) watch_.look(counters_, true);
    EXPECT_EQ(counters_.asked.size(), 30U) << "no tick, but from the second minute on each write";
}

TEST_F(HealthWatchTest, WhatIsRefusedIsSaidOnceAndShowsNothing) {
    run(60);
    EXPECT_TRUE(watch_.health().has_looked);
    error_ = Error{EPERM, "listing workqueues: needs CAP_BPF"};
    EXPECT_EQ(run(3600, kSecond), 60U) << "a refused look is not tried at every write";
    EXPECT_FALSE(watch_.health().has_looked);
    ASSERT_EQ(log_.lines.size(), 1U);
    EXPECT_THAT(log_.lines[0].text,
                testing::HasSubstr("health of workqueues: listing workqueues: needs CAP_BPF"));
    error_.reset();
    run(60);
    EXPECT_TRUE(watch_.health().has_looked);
    EXPECT_EQ(watch_.health().rows.at("a").counts[Health::started], 0U) << "counted from now on";
}

TEST_F(HealthWatchTest, ACpuThatWentAndCameBetweenTwoLooksCountsNothingAgain) {
    std::uint64_t pools = 1;
    counters_.healthy = [&]() -> Result<Looked> { return Looked{unbound(1, "a", 1000, pools)}; };
    run(60);
    pools = 2;
    watch_.cpus_changed();
    run(60);
    EXPECT_EQ(watch_.health().rows.at("a").counts[Health::started], 0U);
}

TEST_F(HealthWatchTest, WhatPassesIsTriedAgainAtTheNextTick) {
    run(60);
    error_ = Error{EAGAIN, "listing workqueues"};
    EXPECT_EQ(run(60), 4U);
    EXPECT_TRUE(watch_.health().has_looked);
    EXPECT_TRUE(log_.lines.empty());
}

}  // namespace
}  // namespace wq
