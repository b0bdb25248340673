// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "evidence/ledger.h"
#include "noise.h"

namespace wq {
namespace {

LedgerKey key_of(const std::string& kind) {
    LedgerKey out;
    out.kernel = "6.12";
    out.topology = "t";
    out.kind = kind;
    out.reference = "cache";
    out.candidate = "smt";
    out.reference_origin = "kernel";
    return out;
}

const std::vector<ComparedCounter> kCounters = {
    {.name = "latency"}, {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true}};

std::vector<std::optional<PairValues>> random_pair(Random& random) {
    const auto value = [&] { return std::exp(0.1 * random.normal()); };
    return {PairValues{value(), value()}, PairValues{value(), value()}};
}

LedgerEntry entry_of(const std::string& kind, const Comparison& comparison) {
    LedgerEntry out;
    out.key = key_of(kind);
    out.columns = comparison.columns();
    out.updated = 1'700'000'000;
    return out;
}

TEST(Ledger, ComesBackFromItsTextToTheLastBit) {
    Random random(1);
    Comparison comparison(kCounters);
    for (int i = 0; i < 100; i++) comparison.add(random_pair(random));
    LedgerEntry entry = entry_of("kcryptd-#:#-#", comparison);
    EDetector detector;
    detector.add(0.1);
    entry.watch = {detector.state(), {}};
    entry.alarms = 2;
    entry.judgement = Judgement::improved;
    entry.decided = 1'700'000'001;
    Ledger ledger;
    ledger.put(entry);
    const auto back = Ledger::from_text(ledger.text());
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(back->text(), ledger.text());
    const LedgerEntry& same = *back->find(entry.key);
    EXPECT_EQ(same.columns[0].worse, entry.columns[0].worse);
    EXPECT_EQ(same.columns[1].better, entry.columns[1].better);
    EXPECT_EQ(same.columns[0].last, entry.columns[0].last);
    EXPECT_EQ(same.watch[0], detector.state());
    EXPECT_EQ(same.judgement, Judgement::improved);
}

// The daemon can read any sums of a comparison that it wrote.
TEST(Ledger, ReadsWhatYearsOfOneSignAndTheLargestValuesAddUpTo) {
    Comparison years(kCounters);
    for (int i = 0; i < 30'000; i++) years.add({PairValues{1, 0.95}, PairValues{1, 0.95}});
    Comparison large(kCounters);
    for (int i = 0; i < 100; i++) {
        large.add({PairValues{1e60, 1e-60}, PairValues{1e60, 1e60}});
        large.add_lost_window(Side::candidate);
    }
    Ledger ledger;
    ledger.put(entry_of("years", years));
    ledger.put(entry_of("large", large));
    const auto back = Ledger::from_text(ledger.text());
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(back->text(), ledger.text());
}

// A random sequence of pairs, writes and kills. A kill loses the pairs that are not on disk yet: the
// comparison continues from the disk, and no pair is counted twice.
TEST(Ledger, AWalkOfStopsAndKillsNeitherLosesNorRepeatsWhatWasWritten) {
    Random random(2);
    std::string disk = Ledger().text();
    Comparison whole(kCounters);  // of the pairs on disk
    Comparison running(kCounters);
    std::vector<std::vector<std::optional<PairValues>>> unwritten;
    for (int step = 0; step < 2'000; step++) {
        const double what = random.uniform();
        if (what < 0.8) {
            unwritten.push_back(random_pair(random));
            running.add(unwritten.back());
        } else if (what < 0.95) {
            Ledger ledger;
            ledger.put(entry_of("a", running));
            disk = ledger.text();
            for (const auto& pair : unwritten) whole.add(pair);
            unwritten.clear();
        } else {
            const auto ledger = Ledger::from_text(disk);
            ASSERT_TRUE(ledger);
            const LedgerEntry* entry = ledger->find(key_of("a"));
            running = entry == nullptr ? Comparison(kCounters) : Comparison(entry->columns);
            unwritten.clear();
            for (std::size_t i = 0; i < kCounters.size(); i++) {
                ASSERT_EQ(running.columns()[i].worse, whole.columns()[i].worse);
                ASSERT_EQ(running.columns()[i].better, whole.columns()[i].better);
            }
        }
    }
    EXPECT_GT(whole.columns()[0].worse.count, 500U);
}

TEST(Ledger, KeepsTheComparisonsOfOtherArmsCountersAndPartitionsApart) {
    LedgerKey key = key_of("a");
    std::set<std::string> texts = {key.text()};
    for (std::string* part :
         {&key.kernel, &key.topology, &key.scheduler, &key.kind, &key.reference, &key.candidate,
          &key.reference_origin, &key.partitions[0], &key.partitions[1], &key.counters, &key.window}) {
        *part += "x";
        EXPECT_TRUE(texts.insert(key.text()).second);
    }
}

TEST(Ledger, RefusesWhatNoComparisonGives) {
    Ledger ledger;
    ledger.put(entry_of("a", Comparison(kCounters)));
    const auto good = nlohmann::json::parse(ledger.text());
    const auto refused = [&](const std::string& pointer, const nlohmann::json& value) {
        auto bad = good;
        bad[nlohmann::json::json_pointer(pointer)] = value;
        return !Ledger::from_text(bad.dump());
    };
    EXPECT_TRUE(refused("/version", 2));
    EXPECT_TRUE(refused("/entries/0/columns/0/worse", {0, 0}));
    EXPECT_TRUE(refused("/entries/0/columns/0/worse/0", 1e300));
    EXPECT_TRUE(refused("/entries/0/columns/0/worse/0", nullptr)) << "how JSON writes NaN";
    EXPECT_TRUE(refused("/entries/0/columns/0/pairs", -1));
    EXPECT_TRUE(refused("/entries/0/columns/0/better_squares", -1));
    EXPECT_TRUE(refused("/entries/0/columns/0/last", std::vector<double>(65)));
    EXPECT_TRUE(refused("/entries/0/columns", nlohmann::json::array()));
    EXPECT_TRUE(refused("/entries/0/verdict", "splendid"));
    auto guards = good;
    for (auto& column : guards["entries"][0]["columns"]) column["guard"] = true;
    EXPECT_FALSE(Ledger::from_text(guards.dump())) << "nothing decides";
    for (const char* text : {"", "{", "[]", "{}"}) EXPECT_FALSE(Ledger::from_text(text)) << text;
    EXPECT_FALSE(refused("/entries/0/verdict", "regressed")) << "the good one is good";
}

TEST(Ledger, ForgetsTheUndecidedFirst) {
    Ledger ledger;
    LedgerEntry decided = entry_of("decided", Comparison(kCounters));
    decided.judgement = Judgement::regressed;
    decided.updated = 1;
    ledger.put(decided);
    for (std::size_t i = 0; i < Ledger::kMostEntries; i++) {
        LedgerEntry entry = entry_of("other" + std::to_string(i), Comparison(kCounters));
        entry.updated = static_cast<std::int64_t>(86'400 * (1 + i));
        ledger.put(entry);
    }
    EXPECT_EQ(ledger.entries().size(), Ledger::kMostEntries);
    EXPECT_NE(ledger.find(decided.key), nullptr);
    EXPECT_EQ(ledger.find(key_of("other0")), nullptr);
}

TEST(Ledger, WhatIsBeingMeasuredStays) {
    Ledger ledger;
    for (std::size_t i = 0; i < Ledger::kMostEntries; i++) {
        LedgerEntry decided = entry_of("decided" + std::to_string(i), Comparison(kCounters));
        decided.judgement = Judgement::regressed;
        ledger.put(decided);
    }
    ledger.put(entry_of("new", Comparison(kCounters)));
    EXPECT_EQ(ledger.entries().size(), Ledger::kMostEntries);
    EXPECT_NE(ledger.find(key_of("new")), nullptr);
    ledger.put(entry_of("another", Comparison(kCounters)));
    EXPECT_NE(ledger.find(key_of("new")), nullptr) << "both have pairs in turn";
    EXPECT_NE(ledger.find(key_of("another")), nullptr);
    LedgerEntry later = entry_of("later", Comparison(kCounters));
    later.updated += 2 * 86'400;
    ledger.put(later);
    EXPECT_EQ(ledger.find(key_of("another")) == nullptr || ledger.find(key_of("new")) == nullptr, true)
        << "without a pair for two days";
    EXPECT_EQ(ledger.entries().size(), Ledger::kMostEntries);
}

TEST(Ledger, AlphaLastsForAllComparisonsOfTheSameArms) {
    double sum = 0;
    for (unsigned alarms = 0; alarms < 100; alarms++) sum += alpha_after(0.05, alarms);
    EXPECT_NEAR(sum, 0.05, 1e-12);
    EXPECT_DOUBLE_EQ(alpha_after(0.05, 0), 0.025);
}

}  // namespace
}  // namespace wq
