// SPDX-License-Identifier: LGPL-2.1-or-later
// The log of verdicts. state_file_test.cpp has what holds for every log.
#include <gmock/gmock.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "evidence/verdicts.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

using nlohmann::json;
using test::keep;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class Verdicts : public testing::Test {
  protected:
    static VerdictRecord record(std::int64_t time = 1000, const std::string& kind = "kcryptd-#") {
        VerdictRecord r;
        r.key = test::key_of(kind);
        r.target = "kcryptd-1";
        r.cpus = "0-7";
        r.time = time;
        r.outcome = Judgement::regressed;
        r.standing = {"latency", 9, 4.5, -2, {3.1, Effect::Interval{1.0, 5.2}}};
        r.settings = JudgeSettings{.alpha = 0.025, .tolerance = 0.01, .max_pairs = 17};
        r.differences = {{"latency", false, {0.1, -0.2}}, {"items", true, {0.3}}};
        return r;
    }
    [[nodiscard]] std::vector<VerdictRecord> on_disk() const {
        VerdictStore store(tree_.path(kFile));
        EXPECT_TRUE(store.read());
        return store.records();
    }

    static constexpr const char* kFile = "var/lib/wq-tuned/verdicts.log";
    test::TempTree tree_;
    VerdictStore store_{tree_.path(kFile)};
};

TEST_F(Verdicts, ComeBackAsTheyWere) {
    ASSERT_TRUE(store_.load());
    VerdictRecord odd = record(2000);
    odd.standing = {"latency", 0, 5000, -5000, {}};  // e-values that no double has
    odd.judged = false;
    odd.contention = Contention{{{}, {}, 2, 9}, {1.5, 0.1, 12, {}}};
    ASSERT_TRUE(keep(store_, record()));
    ASSERT_TRUE(keep(store_, odd));
    ASSERT_THAT(on_disk(), SizeIs(2));
    EXPECT_EQ(to_json(on_disk()[0]), to_json(record()));
    EXPECT_EQ(to_json(on_disk()[1]).at("contention"), to_json(odd.contention));
    EXPECT_FALSE(on_disk()[1].judged);
    VerdictStore daemon(tree_.path(kFile));
    ASSERT_TRUE(daemon.load());
    EXPECT_TRUE(daemon.records().at(0).differences.empty()) << "they are only shown";
    odd.target = "kcryptd-\xff\xe2\x82";
    EXPECT_TRUE(keep(daemon, odd));
    EXPECT_THAT(on_disk(), SizeIs(3));
    odd.comparison = 0;
    EXPECT_TRUE(to_json(odd).is_null()) << "no file has such a number";
}

TEST_F(Verdicts, TheLatestThatWasJudgedCountsForItsComparisonAlone) {
    VerdictRecord later = record(2000);
    later.outcome = Judgement::improved;
    VerdictRecord cut_off = record(3000);
    cut_off.judged = false;
    for (const auto& r : {record(), later, cut_off}) store_.add(r);
    EXPECT_EQ(store_.latest(record().key)->outcome, Judgement::improved);
    EXPECT_EQ(store_.latest(test::key_of("another")), nullptr);
}

TEST_F(Verdicts, AFileThatIsRewrittenKeepsTheNewest) {
    VerdictRecord large = record();
    large.differences = {{"latency", false, std::vector<double>(64, 0.1234567890123456)}};
    for (int i = 0; i < 1000; i++) {
        large.time = i;
        store_.add(large);
    }
    ASSERT_TRUE(keep(store_, record(1000)));
    const auto left = on_disk();
    ASSERT_THAT(left, SizeIs(testing::Ge(200)));
    EXPECT_EQ(left.back().time, 1000);
    EXPECT_EQ(left.front().time, 1001 - std::ssize(left));
    EXPECT_THAT(left.back().differences, SizeIs(2));
    EXPECT_LE(tree_.read(kFile).size(), 1U << 19);
}

TEST_F(Verdicts, WhatADiskRefusedIsWrittenWithTheNext) {
    tree_.write("var/lib/wq-tuned", "not a folder");
    EXPECT_FALSE(keep(store_, record(1)));
    EXPECT_NE(store_.latest(record().key), nullptr);
    tree_.remove("var/lib/wq-tuned");
    EXPECT_TRUE(keep(store_, record(2)));
    EXPECT_THAT(on_disk(), SizeIs(2));
}

// A crash can come between the ledger, which has a verdict, and its line here.
TEST_F(Verdicts, WhatACrashKeptFromTheFileIsTakenFromTheLedger) {
    ASSERT_TRUE(keep(store_, record()));
    Ledger ledger;
    Comparison comparison(std::vector<ComparedCounter>{{.name = "latency"}});
    for (int i = 0; i < 20; i++) comparison.add({PairValues{1, 0.9}});
    LedgerEntry entry;
    entry.columns = comparison.columns();
    entry.judgement = Judgement::improved;
    for (const std::uint64_t number : {0, 1, 4, 3}) {  // 0: none; 1 has its line
        entry.key = test::key_of("kind" + std::to_string(number));
        entry.decided = static_cast<std::int64_t>(100 * number);
        entry.number = number;
        ledger.put(entry);
    }
    VerdictStore next(tree_.path(kFile));
    ASSERT_TRUE(next.load());
    next.complete(ledger);
    ASSERT_TRUE(keep(next, record(5000)));
    const auto all = on_disk();
    ASSERT_THAT(all, SizeIs(4));
    EXPECT_EQ(all[1].key.kind, "kind3");
    EXPECT_EQ(all[2].time, 400);
    EXPECT_EQ(all[2].outcome, Judgement::improved);
    EXPECT_EQ(all[2].standing.pairs, 20U);
    EXPECT_NEAR(all[2].standing.effect.percent, -10, 1e-9);
    EXPECT_EQ(all[3].time, 5000);
    VerdictStore again(tree_.path(kFile));
    ASSERT_TRUE(again.load());
    again.complete(ledger);
    EXPECT_THAT(again.records(), SizeIs(4)) << "once";
}

TEST_F(Verdicts, WhatIsNoVerdictIsSetAside) {
    ASSERT_TRUE(keep(store_, record()));
    const json good = json::parse(tree_.read(kFile));
    const std::pair<const char*, json> rows[] = {
        {"time", -5},
        {"time", 1e18},
        {"comparison", 0},
        {"verdict", "superb"},
        {"e_regressed", nullptr},
        {"interval_percent", json::array({1})},
        {"alpha", 0.6},
        {"tolerance", -1},
        {"contention", 7},
        {"contention", {{"reference", nullptr}}},
        {"differences", {{{"counter", ""}, {"higher_is_better", true}, {"last", json::array()}}}},
    };
    for (const auto& [key, value] : rows) {
        json bad = good;
        bad[key] = value;
        tree_.write(kFile, bad.dump() + "\n");
        VerdictStore store(tree_.path(kFile));
        const auto loaded = store.load();
        ASSERT_FALSE(loaded) << key << value;
        EXPECT_THAT(loaded.error().text, HasSubstr(".broken, the history starts from scratch"));
        EXPECT_THAT(store.records(), SizeIs(0));
        EXPECT_EQ(tree_.read(std::string(kFile) + ".broken"), bad.dump() + "\n");
        EXPECT_TRUE(keep(store, record()));
    }
}

TEST_F(Verdicts, WhatWasTakenBackIsCountedByTheMonth) {
    constexpr std::int64_t kDecember = 1'796'083'200;  // 2026-12-01 00:00 UTC
    std::vector<VerdictRecord> records;
    for (const auto& [time, reason] :
         std::vector<std::pair<std::int64_t, const char*>>{{kDecember - 1, kWatchReason},
                                                           {kDecember, kWatchReason},
                                                           {kDecember + 1, kSetFirstReason},
                                                           {kDecember + 2, ""},
                                                           {kDecember + 3, kMaxPairsReason},
                                                           {kDecember - 366 * 86'400, kWatchReason}}) {
        records.push_back(record(time));
        records.back().comparison = static_cast<unsigned>(records.size());
        records.back().reason = reason;
        records.push_back(records.back());  // of another target with this comparison
    }
    EXPECT_EQ(taken_back_in_month(records, kDecember - 1), 1U);
    EXPECT_EQ(taken_back_in_month(records, kDecember + 30 * 86'400), 2U);
    EXPECT_EQ(taken_back_in_month(records, kDecember + 31 * 86'400), 0U);
}

TEST(ClassOf, PutsASignForEachRunOfDigits) {
    EXPECT_EQ(class_of("kcryptd-254:0-1"), "kcryptd-#:#-#");
    EXPECT_EQ(class_of("kcryptd-254:10-321"), "kcryptd-#:#-#");
    EXPECT_EQ(class_of("writeback"), "writeback");
    EXPECT_EQ(class_of("9p4"), "#p#");
    EXPECT_EQ(class_of("@default"), "@default");
}

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

TEST(WorkSeen, TimesInQueueWorkAreOfAllPairs) {
    WorkSeen seen;
    WorkCount count = counted(0);
    for (const auto& items : {std::vector<std::uint32_t>{0, 10, 0}, {0, 0, 10}}) {
        count.enqueued = items;
        seen.add(count, counted(0));
    }
    const auto times = seen.above(0).reference.enqueue_ns;
    ASSERT_TRUE(times);
    EXPECT_LT(times->front(), times->back());
    EXPECT_FALSE(seen.above(0).candidate.enqueue_ns);
}

TEST(Contention, ComesBackFromItsJsonAndNothingElseDoes) {
    EXPECT_TRUE(to_json(std::nullopt).is_null());
    EXPECT_FALSE(contention_in(nullptr));
    const Contention all[] = {
        {}, {{1200.5, 14, 2, 9, {{1, 2, 3, 4}}}, {0, 0, 12, 31}}, {{{}, {}, 2, 9}, {{}, {}, 12, {}}}};
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
                                     {"enqueue_ns", {1, 2, 3}},
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
    const Contention queued{{1, 1, 2, 9, {{1200, 3100, 4100, 44000}}},
                            {1, 1, 2, 9, {{1100, 2100, 3000, 9000}}}};
    EXPECT_THAT(text_of(queued),
                testing::HasSubstr("queue_work() 1.2/3.1/4.1/44 us -> 1.1/2.1/3/9 us (p50/p90/p95/p99)"));
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
