// SPDX-License-Identifier: LGPL-2.1-or-later
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;

// PAIRS pairs whose candidate costs FACTOR times the baseline, after the rows BEFORE.
std::string recording(unsigned pairs, double factor, const std::string& before = "") {
    std::ostringstream out;
    out << "trial,pair,arm,counter,value\n" << before;
    for (unsigned p = 1; p <= pairs; p++)
        out << "a," << p << ",candidate,latency," << 100 * factor << "\na," << p << ",baseline,latency,100\n";
    return out.str();
}

json judged(const std::string& text, std::vector<std::string> more = {}) {
    const test::TempTree tree;
    EXPECT_TRUE(replace_file(tree.path("trials.csv"), text));
    more.insert(more.end(), {"--json", tree.path("trials.csv")});
    const test::Ran ran = test::captured([&] { return test::run_command(set_up_judge, more); });
    EXPECT_EQ(ran.code, kOk) << ran.err;
    return json::parse(ran.out);
}

TEST(JudgeCommand, ImprovedTakesSixteenPairsAndMoreEvidenceOfManyCandidates) {
    const auto text = recording(40, 0.95);
    EXPECT_EQ(judged(text)["verdict"], "improved");
    EXPECT_EQ(judged(text)["pairs"], 16);
    EXPECT_EQ(judged(text, {"--alpha", "0.0005"})["pairs"], 16) << "E is 17,612 then";
    EXPECT_EQ(judged(text, {"--alpha", "0.0005", "--candidates", "10"})["pairs"], 17);
    EXPECT_EQ(judged(recording(15, 0.95))["verdict"], "undecided");
    EXPECT_EQ(judged(text, {"--max-pairs", "7"})["pairs"], 7);
    // Many small gains must not hide a large loss.
    const char* loss = "a,0,baseline,latency,100\na,0,candidate,latency,100000\n";
    EXPECT_EQ(judged(recording(60, 0.95, loss))["verdict"], "undecided");
}

TEST(JudgeCommand, TheWatchAlarmsAsTheDaemonsDoes) {
    // As Accrue.AnAlarmOfTheWatchTakesTheRunLengthForEachColumn has it.
    EXPECT_EQ(judged(recording(40, 1.1), {"--watch"})["alarm_at"], 17);
    EXPECT_EQ(judged(recording(40, 1.1), {"--watch", "--run-length", "1000"})["alarm_at"], 12);
    EXPECT_EQ(judged(recording(40, 1.1), {"--watch", "--tolerance", "20%"})["alarm_at"], nullptr);
    EXPECT_LT(judged(recording(40, 0.9), {"--watch"})["log_m"], 0);
}

}  // namespace
}  // namespace wq::ctl
