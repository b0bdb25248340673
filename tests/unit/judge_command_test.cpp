// SPDX-License-Identifier: LGPL-2.1-or-later
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

const std::string kHead = "trial,pair,arm,counter,value\n";

// PAIRS pairs of a trial whose candidate costs FACTOR times the baseline.
std::string rows(const std::string& trial, unsigned pairs, double factor) {
    std::ostringstream out;
    for (unsigned p = 1; p <= pairs; p++)
        out << trial << ',' << p << ",candidate,latency," << 100 * factor << '\n'
            << trial << ',' << p << ",baseline,latency,100\n";
    return out.str();
}

class JudgeCommand : public testing::Test {
  protected:
    // OUT: what it prints.
    int run(const std::vector<std::string>& words) {
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = test::run_command(set_up_judge, words);
        out_ = testing::internal::GetCapturedStdout();
        (void)testing::internal::GetCapturedStderr();
        return code;
    }
    json judge(const std::string& text, std::vector<std::string> more = {}) {
        EXPECT_TRUE(replace_file(file_, text));
        more.insert(more.end(), {"--json", file_});
        EXPECT_EQ(run(more), kOk);
        return json::parse(out_);
    }

    wq::test::TempTree tree_{};
    std::string file_ = tree_.root() + "/trials.csv";
    std::string out_;
};

TEST_F(JudgeCommand, ImprovedTakesSixteenPairsAndMoreEvidenceOfManyCandidates) {
    const auto text = kHead + rows("a", 40, 0.95);
    const json one = judge(text);
    EXPECT_EQ(one["verdict"], "improved");
    EXPECT_EQ(one["pairs"], 16);
    const json strict = judge(text, {"--alpha", "0.0005"});
    EXPECT_EQ(strict["pairs"], 16) << "E is 17,612 then";
    EXPECT_EQ(judge(text, {"--alpha", "0.0005", "--candidates", "10"})["pairs"], 17);
    EXPECT_EQ(judge(kHead + rows("a", 15, 0.95))["verdict"], "undecided");
    // Many small gains must not hide a large loss.
    const auto loss = kHead + rows("a", 40, 0.95) + "a,99,baseline,latency,1\na,99,candidate,latency,1\n";
    EXPECT_EQ(judge(loss)["verdict"], "improved");
    const auto hidden =
        kHead + "a,0,baseline,latency,100\na,0,candidate,latency,100000\n" + rows("a", 60, 0.95);
    EXPECT_EQ(judge(hidden)["verdict"], "undecided");
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
        EXPECT_EQ(run({name, value, "a.csv"}), kUsage) << name << ' ' << value;
    EXPECT_EQ(run({}), kUsage);
    EXPECT_EQ(run({"one.csv", "two.csv"}), kUsage);
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
    const json one = judge(kHead + rows.str());
    EXPECT_EQ(one["verdict"], "improved");
    EXPECT_EQ(one["counter"], "latency");
}

}  // namespace
}  // namespace wq::ctl
