// SPDX-License-Identifier: LGPL-2.1-or-later
//
// [judge] of the policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "policy/policy_text.h"
#include "policy_texts.h"

namespace wq {
namespace {

using namespace std::chrono_literals;
using test::load_texts;
using test::mistakes_in_texts;
using testing::ElementsAre;
using testing::StartsWith;

// A [judge] table with LINE.
std::string judge(const std::string& line) {
    return "[judge]\n" + line + "\n";
}

Judging judging(const std::string& line) {
    const auto policy = load_texts({judge(line)});
    if (policy) return policy->judge;
    ADD_FAILURE() << policy.error()[0].text();
    return {};
}

struct WrongLine {
    std::string line;   // of [judge]
    std::string error;  // how the one error begins, from its column on
};

void expect_one_error_of(const WrongLine& wrong) {
    EXPECT_THAT(mistakes_in_texts({judge(wrong.line)}), ElementsAre(StartsWith("0.toml:2:" + wrong.error)))
        << wrong.line;
}

TEST(PolicyJudge, ReadsEveryKey) {
    const auto policy = load_texts(
        {"[judge]\nalpha = 0.01\ntolerance = \"2%\"\nwindow = \"20s\"\nwashout = \"1500ms\"\n"
         "max_pairs = 32\nmin_items = 0\ncounters = [\"tail\", \"items\"]\n"
         "guards = [{ counter = \"cpu\", tolerance = \"7%\" }]\n"
         "concurrent = 3\nrecheck = \"5s\"\nrun_length = 1000\nbudget = \"2min\"\nsettle = \"1h\"\n"
         "retry_after = \"1d 12h\"\njitter = \"0s\"\nhours = \"22:00-06:00\"\n"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    const Judging expected{.settings = {0.01, 0.02, 32, 0},
                           .window = 20s,
                           .washout = 1500ms,
                           .counters = {{"tail", false}, {"items", true}},
                           .guards = {{"cpu", 0.07}},
                           .concurrent = 3,
                           .recheck = 5s,
                           .run_length = 1000,
                           .budget = 120s,
                           .retry_after = 36h,
                           .jitter = 0s,
                           .settle = 1h,
                           .hours = {22 * 60, 6 * 60}};
    EXPECT_EQ(policy->judge, expected);
}

TEST(PolicyJudge, WithoutItTheDefaultsHold) {
    EXPECT_EQ(load_texts({"", "[judge]\n"})->judge, Judging{});
    EXPECT_EQ(judging("min_items = 7").settings.min_items, 7U);
}

TEST(PolicyJudge, AlphaIsANumberOrAPercentage) {
    for (const char* same : {"0.05", "5e-2", "\"0.05\"", "\"5%\"", "\"5.0%\""})
        EXPECT_EQ(judging(std::string("alpha = ") + same).settings.alpha, 0.05) << same;
}

// What is read is what policy_json() prints.
TEST(PolicyJudge, TheEndsOfEveryRangeAreAllowed) {
    for (const char* line :
         {"alpha = 0.5",      "alpha = 1e-06",          "tolerance = \"0%\"",   "tolerance = \"100%\"",
          "window = \"1h\"",  "washout = \"0s\"",       "max_pairs = 1",        "max_pairs = 10000",
          "min_items = 0",    "min_items = 1000000000", "retry_after = \"0s\"", "retry_after = \"3650d\"",
          "jitter = \"0s\"",  "jitter = \"7d\"",        "concurrent = 1",       "concurrent = 16",
          "recheck = \"1s\"", "recheck = \"1d\"",       "run_length = 1",       "run_length = 1000000000",
          "budget = \"1s\"",  "budget = \"1d\"",        "settle = \"0s\"",      "settle = \"1d\""}) {
        const auto policy = load_texts({judge(line)});
        ASSERT_TRUE(policy) << policy.error()[0].text();
        const std::string key(line, std::strcspn(line, " "));
        const auto value = policy_json(*policy, {})["policy"]["judge"][key];
        EXPECT_EQ(key + " = " + toml_text(value), line);
    }
    EXPECT_EQ(judging("window = \"500ms\"\nwashout = \"499ms\"").window, kMinWindow);
}

TEST(PolicyJudge, EachMistakeHasItsPlaceAndSaysWhatIsAllowed) {
    const std::string unit =
        "must be a time with its unit (ms, s, m or min, h, d), such as \"1h 30min\", not ";
    const std::string day = "must be a part of the day, such as \"22:00-06:00\" or \"00:00-24:00\", not ";
    const std::vector<WrongLine> cases = {
        {"alpha = 0", "9: alpha must be above 0 and at most 0.5, not 0"},
        {"alpha = 1", "9: alpha must be above 0 and at most 0.5, not 1"},
        {"alpha = 0.51", "9: alpha must be above 0 and at most 0.5, not the floating-point number 0.51"},
        {"alpha = -0.1", "9: alpha must be"},
        {"alpha = nan", "9: alpha must be above 0 and at most 0.5, not the floating-point number nan"},
        {"alpha = inf", "9: alpha must be"},
        {"alpha = \"51%\"", "9: alpha must be above 0 and at most 0.5, not the string \"51%\""},
        {"alpha = \"0%\"", "9: alpha must be"},
        {"alpha = \"x%\"", "9: alpha must be"},
        {"alpha = \"\"", "9: alpha must be"},
        {"alpha = true", "9: alpha must be a string, not true"},
        {"tolerance = 2", "13: tolerance must be 0% to 100%, with its percent sign, not 2"},
        {"tolerance = 0.02", "13: tolerance must be 0% to 100%"},
        {"tolerance = \"101%\"", "13: tolerance must be 0% to 100%"},
        {"tolerance = \"-1%\"", "13: tolerance must be 0% to 100%"},
        {"tolerance = [\"1%\"]", "13: tolerance must be a string, not an array"},
        {"window = 10", "10: window " + unit + "10"},
        {"window = 10.0", "10: window " + unit + "the floating-point number 10"},
        {"window = \"10\"", "10: window " + unit + "the string \"10\""},
        {"window = \"10 fortnights\"", "10: window " + unit},
        {"window = \"499ms\"", "10: window must be 500ms to 1h, not the string \"499ms\""},
        {"window = \"1h 1ms\"", "10: window must be 500ms to 1h"},
        {"window = \"99999999999999999999s\"", "10: window must be at most 3650d"},
        {"washout = \"-1s\"", "11: washout " + unit},
        {"washout = \"61min\"", "11: washout must be 0s to 1h"},
        {"washout = {}", "11: washout must be a string, not a table"},
        {"max_pairs = 0", "13: max_pairs must be a whole number from 1 to 10000, not 0"},
        {"max_pairs = 10001", "13: max_pairs must be"},
        {"max_pairs = \"16\"", "13: max_pairs must be a whole number from 1 to 10000, not the string"},
        {"min_items = -1", "13: min_items must be a whole number from 0 to 1000000000, not -1"},
        {"min_items = 1000000001", "13: min_items must be"},
        {"retry_after = \"3651d\"", "15: retry_after must be at most 3650d"},
        {"retry_after = \"1500ms\"",
         "15: retry_after must be a whole number of seconds, not the string \"1500ms\""},
        {"retry_after = 7", "15: retry_after " + unit + "7"},
        {"concurrent = 0", "14: concurrent must be a whole number from 1 to 16, not 0"},
        {"concurrent = 17", "14: concurrent must be"},
        {"recheck = \"0s\"", "11: recheck must be 1s to 1d, not the string \"0s\""},
        {"recheck = \"2d\"", "11: recheck must be"},
        {"recheck = \"1500ms\"", "11: recheck must be a whole number of seconds"},
        {"run_length = 0", "14: run_length must be a whole number from 1 to 1000000000, not 0"},
        {"budget = \"0s\"", "10: budget must be 1s to 1d"},
        {"budget = 60", "10: budget " + unit + "60"},
        {"settle = \"25h\"", "10: settle must be 0s to 1d, not the string \"25h\""},
        {"jitter = \"8d\"", "10: jitter must be 0s to 7d, not the string \"8d\""},
        {"jitter = \"1ms\"", "10: jitter must be a whole number of seconds"},
        {"hours = 22", "9: hours " + day + "22"},
        {"hours = \"22-06\"", "9: hours " + day + "the string \"22-06\""},
        {"hours = \"24:00-06:00\"", "9: hours " + day},
        {"hours = \"06:00-06:00\"",
         "9: hours must begin and end at different times (all day is \"00:00-24:00\"), not"},
        {"hours = 22:00:00", "9: hours must be a string, not a time"},
        {"windows = \"10s\"", "11: unknown key \"windows\" in [judge]; did you mean \"window\"?"},
        {"max-pairs = 16", "13: unknown key \"max-pairs\" in [judge]; did you mean \"max_pairs\"?"},
    };
    for (const WrongLine& wrong : cases) expect_one_error_of(wrong);
}

TEST(PolicyJudge, ACounterIsACostUnlessItCountsWhatIsDone) {
    const auto read = judging(
        "counters = [\"latency\", \"tail\", \"lock\", \"enqueue\", \"items\",\n \"psi:io.full\", "
        "\"diskstats:vda.wkB\", # the disk\n \"file:/run/app/p99\"]");
    const std::vector<JudgedCounter> expected = {{"latency", false},
                                                 {"tail", false},
                                                 {"lock", false},
                                                 {"enqueue", false},
                                                 {"items", true},
                                                 {"psi:io.full", false},
                                                 {"diskstats:vda.wkB", true},
                                                 {"file:/run/app/p99", false}};
    EXPECT_EQ(read.counters, expected);
}

TEST(PolicyJudge, ATableMaySayWhichWayIsBetter) {
    const auto read = judging(
        "counters = [{ counter = \"file:/rps\", higher = \"better\" }, \"latency\",\n"
        "{ counter = \"items\", higher = \"worse\" }, { counter = \"diskstats:vda.rkB\" }]");
    const std::vector<JudgedCounter> expected = {
        {"file:/rps", true}, {"latency", false}, {"items", false}, {"diskstats:vda.rkB", true}};
    EXPECT_EQ(read.counters, expected);
    EXPECT_EQ(judging("[[judge.counters]]\ncounter = \"exec\"").counters,
              (std::vector<JudgedCounter>{{"exec", false}}));
}

TEST(PolicyJudge, EachMistakeInTheCountersHasItsPlace) {
    const std::string nine =
        R"("latency", "tail", "exec", "lock", "items", "psi:io.some", "file:/1", "file:/2", "file:/3")";
    const std::vector<WrongLine> cases = {
        {"counters = []", "12: counters must have an element, or be left out"},
        {"counters = [ # none\n]", "12: counters must have an element, or be left out"},
        {"counters = \"latency\"", "12: counters must be an array, not the string \"latency\""},
        {"counters = { counter = \"latency\" }", "12: counters must be an array, not a table"},
        {"counters = [3]", "13: an element of counters must be a string or a table, not 3"},
        {"counters = [\"tail\", [\"exec\"]]",
         "21: an element of counters must be a string or a table, not an array"},
        {"counters = [\"tail\", \"latncy\"]", "21: unknown counter \"latncy\"; did you mean \"latency\"?"},
        {"counters = [\"psi:cpu.sum\"]",
         "13: unknown counter \"psi:cpu.sum\"; did you mean \"psi:cpu.some\"?"},
        {"counters = [\"psi:net.some\"]", "13: unknown counter \"psi:net.some\""},
        {"counters = [\"file:run/p99\"]",
         "13: unknown counter \"file:run/p99\"; known counters: latency, tail, exec, lock, enqueue, items, "
         "throughput, cpu, psi:cpu.some, psi:io.some, psi:io.full, psi:memory.some, psi:memory.full, "
         "diskstats:DEV.rkB, diskstats:DEV.wkB, file:/PATH"},
        {"counters = [\"others\"]", "13: unknown counter \"others\"; known counters: "},
        {"counters = [\"\"]", "13: unknown counter \"\"; known counters: "},
        {"counters = [\"tail\", \"exec\", \"tail\"]", "29: counter \"tail\" is listed twice"},
        {"counters = [\"tail\", { counter = \"tail\", higher = \"better\" }]",
         "33: counter \"tail\" is listed twice"},
        {"counters = [" + nine + "]", "12: counters must have at most 8 elements, not 9"},
        {"counters = [{ counter = \"itmes\" }]", "25: unknown counter \"itmes\"; did you mean \"items\"?"},
        {"counters = [{ counter = 3 }]", "25: counter must be a string that is not empty, not 3"},
        {"counters = [{ counter = \"tail\", higher = \"good\" }]",
         "42: higher must be one of \"better\", \"worse\", not the string \"good\""},
        {"counters = [{ counter = \"tail\", lower = \"better\" }]",
         "41: unknown key \"lower\" in an element of counters; known keys: counter, higher"},
    };
    for (const WrongLine& wrong : cases) expect_one_error_of(wrong);
    EXPECT_THAT(mistakes_in_texts({judge("counters = [\"tail\", { higher = \"worse\" }]")}),
                ElementsAre("0.toml:2:21: this needs the name of a counter, such as counter = \"latency\""));
}

TEST(PolicyJudge, AGuardHasACounterAndATolerance) {
    const auto read = judging(
        "guards = [{ counter = \"throughput\", tolerance = \"0%\" },\n"
        "{ tolerance = \"2.5%\", counter = \"others\" }, { counter = \"psi:io.full\", tolerance = \"100%\" "
        "}]");
    EXPECT_EQ(read.guards, (std::vector<Guard>{{"throughput", 0}, {"others", 0.025}, {"psi:io.full", 1}}));
    EXPECT_TRUE(judging("guards = []").guards.empty());
}

TEST(PolicyJudge, EachMistakeInTheGuardsHasItsPlace) {
    std::string nine;
    for (char i = '1'; i <= '9'; i++)
        nine += std::string("{ counter = \"file:/") + i + "\", tolerance = \"1%\" },";
    const std::vector<WrongLine> cases = {
        {"guards = \"cpu\"", "10: guards must be an array, not the string \"cpu\""},
        {"guards = [\"cpu\"]",
         "11: an element of guards must be a table, such as { counter = \"cpu\", tolerance = \"5%\" }"},
        {"guards = [{ counter = \"cpu\" }]", "11: this needs a tolerance, such as tolerance = \"2%\""},
        {"guards = [{ tolerance = \"5%\" }]",
         "11: this needs the name of a counter, such as counter = \"latency\""},
        {"guards = [{ counter = \"cpus\", tolerance = \"5%\" }]",
         "23: unknown counter \"cpus\"; did you mean \"cpu\"?"},
        {"guards = [{ counter = \"cpu\", tolerance = 5 }]",
         "42: tolerance must be 0% to 100%, with its percent sign, not 5"},
        {"guards = [{ counter = \"cpu\", tolerance = \"5%\", higher = \"better\" }]",
         "57: unknown key \"higher\" in an element of guards; known keys: counter, tolerance"},
        {"guards = [{ counter = \"cpu\", tolerance = \"5%\" }, { counter = \"cpu\", tolerance = \"6%\" }]",
         "62: counter \"cpu\" is listed twice"},
        {"guards = [" + nine + "]", "10: guards must have at most 8 elements, not 9"},
    };
    for (const WrongLine& wrong : cases) expect_one_error_of(wrong);
}

TEST(PolicyJudge, LaterFilesWinByKeyAndAnArrayIsReplaced) {
    const auto policy =
        load_texts({judge("window = \"20s\"\nwashout = \"4s\"\ncounters = [\"tail\", \"exec\"]"),
                    judge("washout = \"5s\"\ncounters = [\"lock\"]"), "[shard]\nsize = 2\n"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_EQ(policy->judge.window, 20s);
    EXPECT_EQ(policy->judge.washout, 5s);
    EXPECT_EQ(policy->judge.counters, (std::vector<JudgedCounter>{{"lock", false}}));
}

const std::string kLess = "washout must be less than window: it is ";

TEST(PolicyJudge, TheWashoutIsLessThanTheWindow) {
    EXPECT_THAT(mistakes_in_texts({judge("washout = \"2s\"")}),
                ElementsAre("0.toml:2:11: " + kLess + "2s (0.toml:2), and window is 2s (built-in)"));
    EXPECT_THAT(mistakes_in_texts({judge(" window = \"500ms\"")}),
                ElementsAre("0.toml:2:11: " + kLess + "500ms (built-in), and window is 500ms (0.toml:2)"));
    EXPECT_THAT(mistakes_in_texts({judge("washout = \"3s\"\nwindow = \"1s\"")}),
                ElementsAre("0.toml:2:11: " + kLess + "3s (0.toml:2), and window is 1s (0.toml:3)"));
}

TEST(PolicyJudge, OfSeveralFilesTheLastToSetEitherIsWrong) {
    EXPECT_THAT(mistakes_in_texts({judge("washout = \"1s\""), judge("\nwindow = \"600ms\""), ""}),
                ElementsAre("1.toml:3:10: " + kLess + "1s (0.toml:2), and window is 600ms (1.toml:3)"));
    EXPECT_THAT(mistakes_in_texts({judge("window = \"4s\""), "", judge("washout = \"5s\"")}),
                ElementsAre("2.toml:2:11: " + kLess + "5s (2.toml:2), and window is 4s (0.toml:2)"));
    EXPECT_TRUE(load_texts({judge("washout = \"30s\""), judge("window = \"1min\"")}));
    EXPECT_TRUE(load_texts({judge("window = \"1s\""), judge("washout = \"0s\"")}));
}

// The default that replaces a wrong value must not cause a second error.
TEST(PolicyJudge, AWrongValueIsNotToldTwice) {
    EXPECT_THAT(mistakes_in_texts({judge("window = \"1day\"\nwashout = \"30s\"")}),
                ElementsAre(StartsWith("0.toml:2:10: window")));
}

}  // namespace
}  // namespace wq
