// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "ctl/commands/judge_command.h"
#include "ctl/options.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kHead = "trial,pair,arm,counter,value\n";

// PAIRS pairs of a trial whose candidate costs FACTOR times the baseline.
std::string rows(const std::string& trial, unsigned pairs, double factor) {
    std::ostringstream out;
    for (unsigned p = 1; p <= pairs; p++)
        out << trial << ',' << p << ",candidate,latency," << 100 * factor << '\n'
            << trial << ',' << p << ",baseline,latency,100\n";
    return out.str();
}

struct Ran {
    int code = -1;
    std::string out, err;
};

Ran run(const std::vector<std::string>& arguments) {
    Ran ran;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    ran.code = test::run_command(set_up_judge, {arguments.begin() + 1, arguments.end()});
    ran.out = testing::internal::GetCapturedStdout();
    ran.err = testing::internal::GetCapturedStderr();
    return ran;
}

class JudgeCommand : public testing::Test {
  protected:
    Ran judge(const std::string& text, std::vector<std::string> more = {"--json"}) {
        EXPECT_TRUE(replace_file(file_, text));
        more.insert(more.begin(), {"judge", file_});
        return run(more);
    }

    wq::test::TempTree tree_{};
    std::string file_ = tree_.root() + "/trials.csv";
};

TEST_F(JudgeCommand, PrintsALineOfJsonPerTrialWithTheKeysOfTheContract) {
    const auto ran = judge(kHead + rows("one", 10, 1.05) + rows("two", 3, 0.95) + rows("three", 16, 1));
    EXPECT_EQ(ran.code, kOk);
    std::istringstream lines(ran.out);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_THAT(line, StartsWith(R"({"trial":"one","verdict":"regressed","counter":"latency","pairs":6,)"));
    const json one = json::parse(line);
    EXPECT_EQ(one.size(), 8U);
    EXPECT_NEAR(one["e_regressed"].get<double>(), 24.0146, 1e-3);
    EXPECT_LT(one["e_improved"].get<double>(), 1);
    EXPECT_NEAR(one["effect_percent"].get<double>(), 5, 1e-9);
    EXPECT_NEAR(one["interval_percent"].at(0).get<double>(), 5, 1e-9);
    ASSERT_TRUE(std::getline(lines, line));
    const json two = json::parse(line);
    EXPECT_EQ(two["verdict"], "undecided") << "no more pairs";
    EXPECT_EQ(two["pairs"], 3);
    EXPECT_TRUE(two["interval_percent"].is_null());
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(json::parse(line)["e_regressed"], 1.0);
    EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(JudgeCommand, PrintsATableForPeople) {
    const auto ran = judge(kHead + rows("one", 10, 1.05) + rows("two", 4, 4), {});
    EXPECT_EQ(ran.code, kOk);
    EXPECT_THAT(ran.out, StartsWith("COMPARISON  VERDICT"));
    EXPECT_THAT(ran.out, ContainsRegex("one +regressed +latency +6 +24.01"));
    EXPECT_THAT(ran.out, HasSubstr("5% worse (5 to 5)"));
    EXPECT_THAT(ran.out, ContainsRegex("two +undecided +latency +4 "));
}

TEST_F(JudgeCommand, ObeysItsOptions) {
    const auto text = kHead + rows("a", 16, 1.05);
    EXPECT_EQ(json::parse(judge(text, {"--json", "--alpha", "0.001"}).out)["pairs"], 12);
    EXPECT_EQ(json::parse(judge(text, {"--json", "--tolerance", "6%"}).out)["verdict"], "undecided");
    EXPECT_EQ(json::parse(judge(text, {"--json", "--max-pairs", "4"}).out)["pairs"], 4);
}

TEST_F(JudgeCommand, ImprovedTakesSixteenPairsAndMoreEvidenceOfManyCandidates) {
    const auto text = kHead + rows("a", 40, 0.95);
    const json one = json::parse(judge(text).out);
    EXPECT_EQ(one["verdict"], "improved");
    EXPECT_EQ(one["pairs"], 16);
    const json strict = json::parse(judge(text, {"--json", "--alpha", "0.0005"}).out);
    EXPECT_EQ(strict["pairs"], 16) << "E is 17,612 then";
    EXPECT_EQ(json::parse(judge(text, {"--json", "--alpha", "0.0005", "--candidates", "10"}).out)["pairs"],
              17);
    EXPECT_EQ(json::parse(judge(kHead + rows("a", 15, 0.95)).out)["verdict"], "undecided");
    // Many small gains must not hide a large loss.
    const auto loss = kHead + rows("a", 40, 0.95) + "a,99,baseline,latency,1\na,99,candidate,latency,1\n";
    EXPECT_EQ(json::parse(judge(loss).out)["verdict"], "improved");
    const auto hidden =
        kHead + "a,0,baseline,latency,100\na,0,candidate,latency,100000\n" + rows("a", 60, 0.95);
    EXPECT_EQ(json::parse(judge(hidden).out)["verdict"], "undecided");
}

TEST_F(JudgeCommand, WatchesForHarmThatBeginsLater) {
    const auto text = kHead + rows("late", 30, 1.05) + rows("good", 30, 0.95);
    std::istringstream lines(judge(text, {"--json", "--watch"}).out);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const json late = json::parse(line);
    EXPECT_EQ(late.size(), 3U);
    EXPECT_EQ(late["trial"], "late");
    EXPECT_EQ(late["alarm_at"], 17);
    EXPECT_NEAR(late["log_m"].get<double>(), 10.4526, 1e-3);
    ASSERT_TRUE(std::getline(lines, line));
    const json good = json::parse(line);
    EXPECT_TRUE(good["alarm_at"].is_null());
    EXPECT_LT(good["log_m"].get<double>(), 0);
    EXPECT_EQ(
        json::parse(
            judge(kHead + rows("a", 30, 1.05), {"--json", "--watch", "--run-length", "20"}).out)["alarm_at"],
        6);
    EXPECT_THAT(judge(text, {"--watch"}).out, ContainsRegex("late +17 +10.45"));
}

TEST_F(JudgeCommand, RefusesWrongOptions) {
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"--alpha", "0"},
                                                          {"--alpha", "0.6"},
                                                          {"--alpha", "nan"},
                                                          {"--alpha", "x"},
                                                          {"--tolerance", "5"},
                                                          {"--tolerance", "101%"},
                                                          {"--tolerance", "-1%"},
                                                          {"--max-pairs", "0"},
                                                          {"--max-pairs", "10001"},
                                                          {"--max-pairs", "-3"},
                                                          {"--candidates", "0"},
                                                          {"--candidates", "101"},
                                                          {"--run-length", "20"},
                                                          {"--bogus", "1"}})
        EXPECT_EQ(judge(kHead + rows("a", 1, 1), {name, value}).code, kUsage) << name << ' ' << value;
    EXPECT_EQ(run({"judge"}).code, kUsage);
    EXPECT_EQ(run({"judge", "one.csv", "two.csv"}).code, kUsage);
}

TEST_F(JudgeCommand, NamesFileAndLineOfAMistake) {
    const auto ran = judge(kHead + rows("a", 1, 1) + "a,2,baseline,latency,nan\n");
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "wq-tunectl: " + file_ + ":4: value 'nan' is not a positive number\n");
}

// The value is not ignored silently.
TEST_F(JudgeCommand, NamesTheLineOfAValueOutOfRange) {
    const auto ran = judge(kHead + "a,1,baseline,latency,1e61\na,1,candidate,latency,2e61\n");
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "wq-tunectl: " + file_ + ":2: value '1e61' is not between 1e-60 and 1e+60\n");
    const auto least = judge(kHead + "a,1,baseline,latency,1e-60\na,1,candidate,latency,1e60\n");
    EXPECT_EQ(json::parse(least.out)["pairs"], 1);
}

// The counter with the most evidence may not satisfy all conditions of `improved`.
TEST_F(JudgeCommand, ImprovedTakesAnyCounterThatHasAllThatItNeeds) {
    std::ostringstream rows;
    const auto value = [&](unsigned pair, const char* counter, double baseline, double candidate) {
        rows << "a," << pair << ",baseline," << counter << ',' << baseline << '\n'
             << "a," << pair << ",candidate," << counter << ',' << candidate << '\n';
    };
    value(0, "tail", 100'000, 101'000);  // a loss that outweighs all gains
    value(0, "latency", 100, 95);
    for (unsigned pair = 1; pair < 40; pair++) {
        value(pair, "tail", 100, 95);
        value(pair, "latency", 100, pair % 5 == 0 ? 105 : 95);
    }
    const json one = json::parse(judge(kHead + rows.str()).out);
    EXPECT_EQ(one["verdict"], "improved");
    EXPECT_EQ(one["counter"], "latency");
}

TEST_F(JudgeCommand, FailsOnAFileThatCannotBeRead) {
    const auto absent = run({"judge", tree_.root() + "/none.csv"});
    EXPECT_EQ(absent.code, kFailure);
    EXPECT_THAT(absent.err, HasSubstr("none.csv: No such file"));
    EXPECT_EQ(run({"judge", tree_.root()}).code, kFailure) << "a directory";
    const auto endless = run({"judge", "/dev/zero"});
    EXPECT_EQ(endless.code, kFailure);
    EXPECT_THAT(endless.err, HasSubstr("too large"));
}

}  // namespace
}  // namespace wq::ctl
