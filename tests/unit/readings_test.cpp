// SPDX-License-Identifier: LGPL-2.1-or-later
// The pairs of a trial, in a file next to the verdicts.
#include "evidence/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

class ReadingsOfTrials : public testing::Test {
  protected:
    static VerdictRecord record(std::int64_t time = 1000, const std::string& target = "kcryptd-1") {
        VerdictRecord r;
        r.key = {"6.12", "8 CPUs", "kcryptd-#", "cache", "smt", "alpha 0.05"};
        r.target = target;
        r.time = time;
        return r;
    }
    // PAIRS pairs of a cost and of a counter that is better when higher.
    static ComparisonReadings readings(std::size_t pairs) {
        ComparisonReadings out{{{"latency", false}, {"file:/x", true}}, {}};
        for (std::size_t i = 0; i < pairs; i++)
            out.add({{100.5 + static_cast<double>(i), 90.25}, {7, 1e-300}});
        return out;
    }
    [[nodiscard]] std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> out;
        for (const auto& entry : std::filesystem::directory_iterator(paths_.readings()))
            out.push_back(entry.path());
        return out;
    }

    test::TempTree tree_;
    Paths paths_{tree_.root()};
};

TEST_F(ReadingsOfTrials, ComeBackAsTheyWere) {
    ASSERT_TRUE(keep_readings(paths_, record(), readings(3)));
    const auto again = read_readings(paths_, record());
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(to_json(*again), to_json(readings(3)));
    EXPECT_EQ(again->counters, readings(3).counters);
    EXPECT_EQ(again->pairs[2][0].reference, 102.5);
    EXPECT_EQ(again->pairs[2][1].candidate, 1e-300);
}

TEST_F(ReadingsOfTrials, AreOfOneTrialAlone) {
    ASSERT_TRUE(keep_readings(paths_, record(), readings(1)));
    ASSERT_TRUE(keep_readings(paths_, record(1000, "kcryptd-2"), readings(2)));
    EXPECT_THAT(read_readings(paths_, record())->pairs, SizeIs(1)) << "two ended in the same second";
    EXPECT_THAT(read_readings(paths_, record(1000, "kcryptd-2"))->pairs, SizeIs(2));
    EXPECT_EQ(read_readings(paths_, record(1001)).error().code, ENOENT);
}

TEST_F(ReadingsOfTrials, ATrialWithoutAPairLeavesNothing) {
    ASSERT_TRUE(keep_readings(paths_, record(), readings(0)));
    EXPECT_FALSE(std::filesystem::exists(paths_.readings()));
}

TEST_F(ReadingsOfTrials, TheFirstPairsAreKept) {
    const ComparisonReadings many = readings(ComparisonReadings::kMost + 5);
    ASSERT_THAT(many.pairs, SizeIs(ComparisonReadings::kMost));
    EXPECT_EQ(many.pairs.front()[0].reference, 100.5);
    ASSERT_TRUE(keep_readings(paths_, record(), many));
    EXPECT_THAT(read_readings(paths_, record())->pairs, SizeIs(ComparisonReadings::kMost));
    EXPECT_LT(std::filesystem::file_size(files().at(0)), 64U << 10);
}

TEST_F(ReadingsOfTrials, TheOldestTrialsGiveWay) {
    for (std::size_t i = 0; i < kMostRead; i++)
        tree_.write("var/lib/wq-tuned/readings/" + std::to_string(1'000'000'000'000 + i) + "-0.json", "[]");
    tree_.write("var/lib/wq-tuned/readings/note", "not ours");
    ASSERT_TRUE(keep_readings(paths_, record(9'999'999'999'999), readings(1)));
    EXPECT_THAT(files(), SizeIs(kMostRead + 1));
    EXPECT_FALSE(tree_.exists("var/lib/wq-tuned/readings/1000000000000-0.json"));
    EXPECT_TRUE(tree_.exists("var/lib/wq-tuned/readings/1000000000001-0.json"));
    EXPECT_TRUE(read_readings(paths_, record(9'999'999'999'999)));
}

TEST_F(ReadingsOfTrials, CutOffTrialsPushOutNoJudgedOnes) {
    ASSERT_TRUE(keep_readings(paths_, record(1), readings(1)));
    VerdictRecord cut_off = record();
    cut_off.judged = false;
    for (std::size_t i = 0; i < kMostCutOffRead + kMostRead; i++) {
        cut_off.time++;
        ASSERT_TRUE(keep_readings(paths_, cut_off, readings(1)));
    }
    EXPECT_TRUE(read_readings(paths_, record(1)));
    EXPECT_TRUE(read_readings(paths_, cut_off)) << "the last";
    EXPECT_THAT(files(), SizeIs(1 + kMostCutOffRead));
}

TEST_F(ReadingsOfTrials, TheOneJustWrittenStaysWhereTheClockWentBack) {
    for (std::size_t i = 0; i < kMostRead; i++)
        tree_.write("var/lib/wq-tuned/readings/" + std::to_string(1'000'000'000'000 + i) + "-0.json", "[]");
    ASSERT_TRUE(keep_readings(paths_, record(5), readings(1)));
    EXPECT_TRUE(read_readings(paths_, record(5)));
    EXPECT_THAT(files(), SizeIs(kMostRead));
}

TEST_F(ReadingsOfTrials, WhatAKilledDaemonLeftHalfWrittenIsRemoved) {
    tree_.write("var/lib/wq-tuned/readings/0000000000001-0.json.new", "[");
    ASSERT_TRUE(keep_readings(paths_, record(), readings(1)));
    EXPECT_THAT(files(), SizeIs(1));
}

// The store of verdicts replaces a byte that is not UTF-8 by another character.
TEST_F(ReadingsOfTrials, OfANameThatIsNotUtf8AreFoundAgain) {
    VerdictRecord odd = record(1000, "kcryptd-\xff\xe2\x82");
    odd.key.kind = class_of(odd.target);
    VerdictStore store(paths_.verdicts());
    ASSERT_TRUE(store.add(odd).save());
    ASSERT_TRUE(keep_readings(paths_, odd, readings(2)));
    VerdictStore again(paths_.verdicts());
    ASSERT_TRUE(again.read());
    ASSERT_NE(again.records().at(0).target, odd.target);
    const auto read = read_readings(paths_, again.records().at(0));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_THAT(read->pairs, SizeIs(2));
}

TEST_F(ReadingsOfTrials, WhatIsNoFileOfOursIsRefused) {
    ASSERT_TRUE(keep_readings(paths_, record(), readings(2)));
    const std::string file = files().at(0).string().substr(tree_.root().size() + 1);
    const json good = to_json(readings(2));
    const auto with = [&](const char* key, const json& value) {
        json bad = good;
        bad[0][key] = value;
        return bad.dump();
    };
    for (const std::string& bad :
         {std::string(), std::string("{"), std::string("7"), std::string("[null]"), with("reference", 1),
          with("reference", {1}), with("candidate", {1, 2, 3}), with("candidate", {1, -2}),
          with("candidate", {1, nullptr}), with("counter", 1), with("higher_is_better", "yes"),
          with("reference", json(std::vector<double>(ComparisonReadings::kMost + 1, 1.0)))}) {
        tree_.write(file, bad);
        const auto read = read_readings(paths_, record());
        ASSERT_FALSE(read) << bad;
        EXPECT_THAT(read.error().text, HasSubstr("readings/0000000001000-"));
    }
}

}  // namespace
}  // namespace wq
