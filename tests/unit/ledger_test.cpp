// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "evidence/ledger.h"
#include "manual_writer.h"
#include "noise.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

using test::key_of;

const std::vector<ComparedCounter> kCounters = {
    {.name = "latency"}, {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true}};

std::vector<std::optional<PairValues>> random_pair(Random& random) {
    const auto value = [&] { return std::exp(0.1 * random.normal()); };
    return {PairValues{value(), value()}, PairValues{value(), value()}};
}

// The ledger's text, and back.
std::string text_of(const Ledger& ledger) {
    return StateFile<Ledger>("", kLedgerRules).text(ledger).value();
}

Result<Ledger> from_text(const std::string& text) {
    const test::TempTree tree{test::File("ledger.json", text)};
    const auto read = StateFile<Ledger>(tree.path("ledger.json"), kLedgerRules).read();
    return read ? Result<Ledger>(read->value()) : tl::unexpected(read.error());
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
    entry.watch = {detector, {}};
    entry.after = {{{3, -0.1, 0.2}, 1'600'000'000, 1'600'000'001}, {}};
    entry.alarms = 2;
    entry.judgement = Judgement::improved;
    entry.decided = 1'700'000'001;
    entry.lowest_lock = 41.25;
    Ledger ledger;
    ledger.put(entry);
    const auto back = from_text(text_of(ledger));
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(text_of(*back), text_of(ledger));
    const LedgerEntry& same = *back->find(entry.key);
    EXPECT_EQ(same.columns[0].worse, entry.columns[0].worse);
    EXPECT_EQ(same.columns[1].better, entry.columns[1].better);
    EXPECT_EQ(same.columns[0].last, entry.columns[0].last);
    EXPECT_EQ(same.watch[0], detector);
    EXPECT_EQ(same.after, entry.after);
    EXPECT_EQ(same.judgement, Judgement::improved);
    EXPECT_EQ(same.lowest_lock, 41.25);
}

// It is that of the host: of all comparisons of this kernel and topology.
TEST(Ledger, TheLowestLockIsThatOfThisKernelAndTopology) {
    const LedgerKey here = key_of("kcryptd-#", "6.12", "t");
    Ledger ledger;
    EXPECT_EQ(ledger.lowest_lock(here), 0);
    const struct {
        const char *kernel, *topology;
        std::optional<double> lock;
        double lowest;  // of all so far
    } rows[] = {
        {"6.12", "t", {}, 0},     {"6.12", "t", 90, 90}, {"6.12", "t", 50, 50}, {"6.12", "t", 70, 50},
        {"6.12", "other", 1, 50}, {"7.2", "t", 2, 50},   {"6.12", "t", 0, 0},
    };
    for (const auto& [kernel, topology, lock, lowest] : rows) {
        LedgerEntry entry =
            entry_of("other-" + std::to_string(ledger.entries().size()), Comparison(kCounters));
        entry.key.kernel = kernel;
        entry.key.topology = topology;
        entry.lowest_lock = lock;
        ledger.put(entry);
        EXPECT_EQ(ledger.lowest_lock(here), lowest) << kernel << topology << lock.value_or(-1);
    }
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
    const auto back = from_text(text_of(ledger));
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(text_of(*back), text_of(ledger));
}

// A random sequence of pairs, writes and kills. A kill loses the pairs that are not on disk yet: the
// comparison continues from the disk, and no pair is counted twice.
TEST(Ledger, AWalkOfStopsAndKillsNeitherLosesNorRepeatsWhatWasWritten) {
    Random random(2);
    std::string disk = text_of({});
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
            disk = text_of(ledger);
            for (const auto& pair : unwritten) whole.add(pair);
            unwritten.clear();
        } else {
            const auto ledger = from_text(disk);
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
    const auto good = nlohmann::json::parse(text_of(ledger));
    const auto refused = [&](const std::string& pointer, const nlohmann::json& value) {
        auto bad = good;
        bad[nlohmann::json::json_pointer(pointer)] = value;
        return !from_text(bad.dump());
    };
    const std::pair<const char*, nlohmann::json> rows[] = {
        {"/entries/0/columns/0/worse", {0, 0}},
        {"/entries/0/columns/0/worse/0", 1e300},
        {"/entries/0/columns/0/worse/0", nullptr},  // how JSON writes NaN
        {"/entries/0/columns/0/pairs", -1},
        {"/entries/0/columns/0/better_squares", -1},
        {"/entries/0/columns/0/last", std::vector<double>(65)},
        {"/entries/0/columns", nlohmann::json::array()},
        {"/entries/0/after", {nullptr}},
        {"/entries/0/after",
         nlohmann::json::array({{{"pairs", 1}, {"sum", 0}, {"squares", 0}, {"first", 1}, {"last", 1}}})},
        {"/entries/0/verdict", "splendid"}};
    for (const auto& [pointer, value] : rows) EXPECT_TRUE(refused(pointer, value)) << pointer;
    auto guards = good;
    for (auto& column : guards["entries"][0]["columns"]) column["guard"] = true;
    EXPECT_FALSE(from_text(guards.dump())) << "nothing decides";
    EXPECT_FALSE(refused("/entries/0/verdict", "regressed")) << "the good one is good";
}

TEST(Ledger, WhatWasMeasuredLastStays) {
    Ledger ledger;
    for (std::size_t i = 0; i <= Ledger::kMostEntries; i++) {
        LedgerEntry entry = entry_of("kind" + std::to_string(i), Comparison(kCounters));
        entry.updated = i == Ledger::kMostEntries ? 0 : static_cast<std::int64_t>(1 + i);
        ledger.put(entry);
    }
    EXPECT_EQ(ledger.entries().size(), Ledger::kMostEntries);
    EXPECT_NE(ledger.find(key_of("kind1000")), nullptr) << "the new one, whatever the clock says";
    EXPECT_EQ(ledger.find(key_of("kind0")), nullptr);
    EXPECT_NE(ledger.find(key_of("kind1")), nullptr);
}

TEST(Ledger, AlphaLastsForAllComparisonsOfTheSameArms) {
    double sum = 0;
    for (unsigned alarms = 0; alarms < 100; alarms++) sum += alpha_after(0.05, alarms);
    EXPECT_NEAR(sum, 0.05, 1e-12);
    EXPECT_DOUBLE_EQ(alpha_after(0.05, 0), 0.025);
}

constexpr std::uint64_t kMinute = 60'000'000;

class LedgerFileTest : public testing::Test {
  protected:
    test::TempTree tree_{test::Dir("var")};
    std::string path_ = tree_.path("var/lib/ledger.json");
    std::string pairs_ = tree_.path("run/pairs.json");
    test::FakeLog log_;
    WriteAtOnce at_once_;
};

// The last save has not ended when the daemon is killed.
TEST_F(LedgerFileTest, AKillLosesNoPairAndRepeatsNone) {
    Random random(3);
    Comparison comparison(kCounters);
    const auto pair = [&](LedgerFile& file, const char* kind) {
        comparison.add(random_pair(random));
        file.put(entry_of(kind, comparison));
    };
    test::ManualWriter later;
    LedgerFile file(path_, pairs_, later, log_);
    file.load();
    pair(file, "a");
    file.save(1);
    later.answer();
    pair(file, "a");
    file.save(2);
    pair(file, "a");
    pair(file, "b");
    file.keep(7);
    for (const bool saved : {false, true}) {
        if (saved) later.answer();
        LedgerFile next(path_, pairs_, later, log_);
        next.load();
        EXPECT_EQ(text_of(next.ledger()), text_of(file.ledger()));
        EXPECT_TRUE(next.has(7));
        EXPECT_FALSE(next.has(8));
    }
    file.save(3);
    later.answer();
    EXPECT_FALSE(tree_.exists("run/pairs.json")) << "the ledger has them all";
    LedgerFile last(path_, pairs_, later, log_);
    last.load();
    EXPECT_EQ(text_of(last.ledger()), text_of(file.ledger()));
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(LedgerFileTest, OlderPairsDoNotReplaceTheLedger) {
    test::ManualWriter later;
    Comparison comparison(kCounters);
    LedgerFile file(path_, pairs_, later, log_);
    file.put(entry_of("a", comparison));
    file.keep(1);
    Random random(4);
    comparison.add(random_pair(random));
    file.put(entry_of("a", comparison));
    file.save(1);
    ASSERT_TRUE(StateFile<Ledger>(path_, kLedgerRules).save(file.ledger()));
    LedgerFile next(path_, pairs_, later, log_);
    next.load();
    EXPECT_EQ(pairs_of(next.ledger().entries().begin()->second), 1U);
}

// state_file_test.cpp has what becomes of the files.
TEST_F(LedgerFileTest, ABrokenFileIsSaidAndOneThatCannotBeReadIsAReason) {
    for (const bool broken : {true, false}) {
        broken ? tree_.write("var/lib/ledger.json", "{") : tree_.add(test::Dir("var/lib/ledger.json"));
        log_.lines.clear();
        LedgerFile file(path_, pairs_, at_once_, log_);
        file.load();
        EXPECT_TRUE(file.ledger().entries().empty());
        EXPECT_EQ(log_.count(Event::verdicts_broken), 1U);
        EXPECT_EQ(file.why_not(1) == "", broken);
        file.put(entry_of("a", Comparison(kCounters)));
        file.save(1);
        EXPECT_EQ(log_.lines.size(), 1U);
        if (broken) tree_.remove("var/lib/ledger.json");
    }
}

TEST_F(LedgerFileTest, IsWrittenOnceAMinuteAndOnlyWhereThereIsNews) {
    test::ManualWriter later;
    LedgerFile file(path_, pairs_, later, log_);
    file.save_in_time(kMinute);
    EXPECT_EQ(later.waiting(), 0U);
    file.put(entry_of("a", Comparison(kCounters)));
    file.save_in_time(kMinute);
    EXPECT_EQ(later.waiting(), 1U);
    later.answer();
    file.put(entry_of("b", Comparison(kCounters)));
    file.save_in_time(2 * kMinute - 1);
    EXPECT_EQ(later.waiting(), 0U);
    file.save_in_time(2 * kMinute);
    EXPECT_EQ(later.waiting(), 1U);
}

TEST_F(LedgerFileTest, ADiskThatDoesNotAnswerIsAReasonAndSoIsOneThatFails) {
    test::ManualWriter later;
    LedgerFile file(path_, pairs_, later, log_);
    file.put(entry_of("a", Comparison(kCounters)));
    file.save(kMinute);
    EXPECT_EQ(file.why_not(kMinute + 1), "");
    EXPECT_EQ(file.why_not(kMinute + 3'000'000), "the disk has not answered for 3 s");
    tree_.write("var/lib", "no folder");
    later.answer();
    EXPECT_THAT(file.why_not(kMinute + 3'000'000), testing::HasSubstr("ledger.json"));
    EXPECT_EQ(log_.at_least(LOG_WARNING), 1U);
    std::remove(tree_.path("var/lib").c_str());
    file.save_in_time(3 * kMinute);
    later.answer();
    EXPECT_EQ(file.why_not(3 * kMinute), "");
}

}  // namespace
}  // namespace wq
