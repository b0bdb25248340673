// SPDX-License-Identifier: LGPL-2.1-or-later
// The wait for the lock, the pools and the kworkers of both arms.
#include "evidence/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

WorkCount counted(double lock, double latency = 1000, unsigned pools = 0, unsigned workers = 0) {
    return {.latency = latency, .lock = lock, .pools = pools, .workers = workers};
}

TEST(WorkSeen, IsAboveTheLowestAndNeverBelowZeroOrWithoutASight) {
    const struct {
        WorkCount count;
        double lowest;
        std::optional<double> ns, percent;
    } rows[] = {
        {counted(140), 40, 100, 10},
        {counted(40), 40, 0, 0},
        {counted(30), 40, 0, 0},
        {counted(140), 0, 140, 14},
        {counted(3000), 0, 3000, 100},  // latency is of other items than lock
        {counted(140, 0), 40, 100, {}},
        {counted(WorkCount::kUnknown), 40, {}, {}},
        {counted(WorkCount::kUnknown), 0, {}, {}},
    };
    for (const auto& [count, lowest, ns, percent] : rows) {
        WorkSeen seen;
        seen.add(count, counted(lowest));
        const Contention of = seen.above(lowest);
        EXPECT_EQ(of.reference.lock_ns, ns) << count.lock;
        EXPECT_EQ(of.reference.lock_percent, percent) << count.lock;
        EXPECT_EQ(of.candidate.lock_ns, 0);
        EXPECT_FALSE(of.reference.pools || of.reference.workers) << "0 is not known";
    }
}

TEST(WorkSeen, TheLockIsAMeanAndThePoolsAreThoseOfTheLastPair) {
    WorkSeen seen;
    seen.add(counted(100, 1000, 2, 9), counted(0, 1000, 12, 31));
    seen.add(counted(900, 1000, 2, 7), counted(0, 1000, 12, 0));
    const Contention of = seen.above(0);
    EXPECT_EQ(of.reference.lock_ns, 200) << "an eighth of the way";
    EXPECT_EQ(of.reference.lock_percent, 20);
    EXPECT_EQ(of.reference.workers, 7U);
    EXPECT_EQ(of.candidate.pools, 12U);
    EXPECT_FALSE(of.candidate.workers);
    for (int i = 0; i < 100; i++) seen.add(counted(900), counted(0));
    EXPECT_NEAR(*seen.above(0).reference.lock_ns, 900, 1);
    seen.add(counted(WorkCount::kUnknown), counted(0));
    EXPECT_FALSE(seen.above(0).reference.lock_ns) << "not an old value";
    seen.add(counted(50), counted(0));
    EXPECT_EQ(seen.above(0).reference.lock_ns, 50) << "the mean begins anew";
}

TEST(Contention, ComesBackFromItsJsonAndNothingElseDoes) {
    EXPECT_TRUE(to_json(std::nullopt).is_null());
    EXPECT_FALSE(contention_in(nullptr));
    const Contention all[] = {{}, {{1200.5, 14, 2, 9}, {0, 0, 12, 31}}, {{{}, {}, 2, 9}, {{}, {}, 12, {}}}};
    for (const Contention& one : all) {
        const json document = to_json(one);
        const auto back = contention_in(document);
        ASSERT_TRUE(back) << document;
        EXPECT_EQ(to_json(back), document);
    }
    EXPECT_TRUE(to_json(all[0]).at("reference").at("lock_ns").is_null()) << "not 0";
    const json good = to_json(all[1]);
    for (const auto& [key, value] : {std::pair<const char*, json>{"lock_percent", 101},
                                     {"lock_ns", -1},
                                     {"lock_ns", "1"},
                                     {"pools", -1},
                                     {"workers", 1e10},
                                     {"more", 1}}) {
        json bad = good;
        bad["candidate"][key] = value;
        EXPECT_FALSE(contention_in(bad)) << bad;
    }
    for (const json& bad : {json(7), json::array(), json::object(), json{{"reference", nullptr}}})
        EXPECT_FALSE(contention_in(bad)) << bad;
}

TEST(Contention, IsToldInWords) {
    const Contention much{{1200, 14.2, 2, 9}, {3, 0.04, 12, 31}};
    EXPECT_EQ(text_of(much), "lock wait 14% of latency -> 0.04%, pools 2 -> 12, kworkers 9 -> 31");
    EXPECT_EQ(lock_text(much, "cache", "smt"),
              "14% of latency under cache (1200 ns an item), 0.04% under smt (3 ns)");
    EXPECT_EQ(pools_text(much, "cache", "smt"), "2 with 9 kworkers under cache, 12 with 31 under smt");
    const Contention unseen{{{}, {}, 2, 9}, {{}, {}, 2, 31}};
    EXPECT_EQ(text_of(unseen), "lock wait not seen, pools 2, kworkers 9 -> 31");
    EXPECT_EQ(lock_text(unseen, "cache", "smt"), "not seen on this kernel");
    const Contention unknown{{0, 0, {}, {}}, {0, 0.001, 2, {}}};
    EXPECT_EQ(text_of(unknown), "lock wait 0% of latency -> under 0.01%");
    EXPECT_EQ(pools_text(unknown, "cache", "smt"), "");
}

// What the reference waits is all that a finer scope can gain.
TEST(Contention, BelowAPercentAFinerScopeCanHardlyGain) {
    const char* const kHardly = "a scope finer than cache can hardly gain by the lock";
    for (const double percent : {0.0, 0.5, 0.99})
        EXPECT_THAT(lock_text({{5, percent, 1, 1}, {500, 50, 1, 1}}, "cache", "smt"), HasSubstr(kHardly));
    for (const double percent : {1.0, 14.0, 100.0})
        EXPECT_THAT(lock_text({{5, percent, 1, 1}, {0, 0, 1, 1}}, "cache", "smt"), Not(HasSubstr(kHardly)));
    EXPECT_THAT(lock_text({}, "cache", "smt"), Not(HasSubstr(kHardly))) << "not seen";
}

}  // namespace
}  // namespace wq
