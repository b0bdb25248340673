// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::Dir;
using test::File;
using test::TempTree;
using testing::IsEmpty;
using Json = nlohmann::json;

struct CheckRun {
    int code;
    std::string out;
    std::string err;
};

CheckRun run_check(const ctl::Options& options, const std::vector<std::string>& files = {}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = ctl::check(options, files);
    std::fflush(stdout);
    return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

const char* const kTwoRules = "[[workqueue]]\nmatch = \"a\"\n[[workqueue]]\nmatch = \"b\"\n";

TEST(Check, TellsTheFilesInForceAndTheirRules) {
    const TempTree tree{
        Dir("etc/wq-tuned", {File("wq-tuned.toml", kTwoRules),
                             Dir("wq-tuned.toml.d", {File("a.toml", "[[workqueue]]\nmatch = \"c\"\n")})})};
    ctl::Options options;
    options.root = tree.root();
    const CheckRun run = run_check(options);
    EXPECT_EQ(run.code, ctl::kOk);
    EXPECT_EQ(run.out, tree.path("etc/wq-tuned/wq-tuned.toml") + ": ok, 2 rules\n" +
                           tree.path("etc/wq-tuned/wq-tuned.toml.d/a.toml") + ": ok, 1 rule\n");
    EXPECT_THAT(run.err, IsEmpty());
}

TEST(Check, WarnsOfARuleThatHasExpired) {
    const TempTree tree{File("a.toml", "[[workqueue]]\nmatch = \"a\"\nexpires = \"2020-01-01\"\n"),
                        File("b.toml", "[[workqueue]]\nmatch = \"a\"\nexpires = \"soon\"\n")};
    const CheckRun expired = run_check({}, {tree.path("a.toml")});
    EXPECT_EQ(expired.code, ctl::kOk);
    EXPECT_EQ(expired.err, tree.path("a.toml") + ":1:1: warning: this rule has expired\n");
    const CheckRun bad = run_check({}, {tree.path("b.toml")});
    EXPECT_EQ(bad.code, ctl::kFailure);
    EXPECT_THAT(bad.err, testing::HasSubstr(
                             "b.toml:3:11: expires must be a day without a time, such as 2027-01-31, not"));
}

TEST(Check, WarnsOfADefaultScopeThatMovesWhatARuleLeaves) {
    const std::string rules =
        "[[workqueue]]\nmatch = [\"writeback\", \"nvme*\"]\nscope = \"leave\"\n"
        "[[workqueue]]\nmatch = \"*\"\nscope = \"auto\"\n[default_scope]\n";
    const TempTree tree{File("a.toml", rules + "scope = \"system\"\n"),
                        File("b.toml", rules + "scope = \"plan\"\n"),
                        File("auto.toml", rules + "scope = \"auto\"\n"),
                        File("off.toml", rules + "scope = \"plan\"\nmanage = false\n"),
                        File("over.toml", rules + "scope = \"plan\"\nexpires = 2020-01-31\n")};
    const auto expected = [&](const std::string& file, const std::string& scope) {
        return fmt::format(
            "{0}:8:1: warning: [default_scope] at {0}:8 sets `{1}`; `writeback`, `nvme*`, left by the "
            "rule at {0}:1, follows it\n",
            tree.path(file), scope);
    };
    EXPECT_EQ(run_check({}, {tree.path("a.toml")}).err, expected("a.toml", "system"));
    EXPECT_EQ(run_check({}, {tree.path("b.toml")}).err, expected("b.toml", "plan"));
    for (const char* file : {"auto.toml", "off.toml"})
        EXPECT_THAT(run_check({}, {tree.path(file)}).err, IsEmpty()) << file;
    EXPECT_EQ(run_check({}, {tree.path("over.toml")}).err,
              tree.path("over.toml") + ":8:1: warning: this rule has expired\n");
}

// On the machine itself. A rule for a disk that is not plugged in is fine.
TEST(Check, NotesAPatternThatMatchesNoWorkqueueHere) {
    TempTree tree{
        File("etc/wq-tuned/wq-tuned.toml",
             "[[workqueue]]\nmatch = [\"writebak\", \"write*\", \"kworker/u8:0\"]\n"
             "[[workqueue]]\nmatch = \"nvme*\"\nexpires = 2020-01-31\n[[workqueue]]\nmatch = \"*\"\n")};
    const std::string note = tree.path("etc/wq-tuned/wq-tuned.toml") +
                             ":1: note: \"writebak\" matches no workqueue that this machine has";
    ctl::Options options;
    options.root = tree.root();
    EXPECT_THAT(run_check(options).err, testing::Not(testing::HasSubstr("note")))
        << "no workqueues are known";
    tree.add(File("sys/devices/virtual/workqueue/writeback/per_cpu", "0\n"));
    tree.add(File("sys/devices/virtual/workqueue/writeback/affinity_scope", "default (cache)\n"));
    const CheckRun run = run_check(options);
    EXPECT_EQ(run.code, ctl::kOk);
    EXPECT_THAT(run.err, testing::EndsWith("\n" + note + "\n"));
    options.json = true;
    EXPECT_EQ(Json::parse(run_check(options).out)["notes"], Json::array({note}));
}

TEST(Check, TellsHostTablesAndTheirMistakes) {
    const std::string hosts =
        "[[host]]\nname = \"a\"\nwhen = { cores = 4 }\n[[host.workqueue]]\nmatch = \"c\"\n"
        "[[host]]\nname = \"b\"\nwhen = { cores = 8 }\n[[host.workqueue]]\nmatch = \"d\"\n";
    const TempTree tree{File("a.toml", kTwoRules + hosts), File("b.toml", hosts + "scope = \"no\"\n")};
    ctl::Options options;
    options.topology = "synthetic:l3:1 core:4 pu:1";
    const CheckRun good = run_check(options, {tree.path("a.toml")});
    EXPECT_EQ(good.out, tree.path("a.toml") + ": ok, 3 rules, 2 host tables of which 1 matches here\n");
    const CheckRun bad = run_check(options, {tree.path("b.toml")});
    EXPECT_EQ(bad.code, ctl::kFailure);
    EXPECT_THAT(bad.err, testing::HasSubstr("b.toml:11:9: scope must be one of"));
}

TEST(Check, SaysSoWhereThereIsNoPolicy) {
    const TempTree tree;
    ctl::Options options;
    options.root = tree.root();
    const CheckRun run = run_check(options);
    EXPECT_EQ(run.code, ctl::kOk);
    EXPECT_EQ(run.out, "no policy file: the built-in policy applies (every workqueue, scope auto)\n");
}

TEST(Check, FilesTakeThePlaceOfWhatIsInForce) {
    const TempTree tree{File("etc/wq-tuned/wq-tuned.toml", "broken"), File("a.toml", kTwoRules),
                        File("b.toml")};
    ctl::Options options;
    options.root = tree.root();
    EXPECT_EQ(run_check(options, {tree.path("a.toml")}).out, tree.path("a.toml") + ": ok, 2 rules\n");
    EXPECT_EQ(run_check(options, {tree.path("b.toml")}).out, tree.path("b.toml") + ": ok, 0 rules\n");
}

TEST(Check, PrintsEveryMistakeUnderlined) {
    const TempTree tree{File("a.toml", "[shard]\nsize = 0\nsiez = 1\n")};
    const CheckRun run = run_check({}, {tree.path("a.toml")});
    EXPECT_EQ(run.code, ctl::kFailure);
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_EQ(run.err, tree.path("a.toml") + ":2:8: size must be a whole number from 1 to 1024, not 0\n" +
                           "    2 | size = 0\n      |        ^\n" + tree.path("a.toml") +
                           ":3:1: unknown key \"siez\" in [shard]; did you mean \"size\"?\n" +
                           "    3 | siez = 1\n      | ^\n");
}

TEST(Check, JsonIsForMachines) {
    const TempTree tree{File("a.toml", "[shard]\nsize = 0\n"), File("b.toml")};
    ctl::Options options;
    options.json = true;
    const CheckRun bad = run_check(options, {tree.path("a.toml")});
    EXPECT_EQ(bad.code, ctl::kFailure);
    EXPECT_THAT(bad.err, IsEmpty());
    EXPECT_EQ(
        Json::parse(bad.out),
        (Json{{"ok", false},
              {"files", {tree.path("a.toml")}},
              {"errors", Json::array({{{"file", tree.path("a.toml")},
                                       {"line", 2},
                                       {"column", 8},
                                       {"message", "size must be a whole number from 1 to 1024, not 0"}}})},
              {"warnings", Json::array()},
              {"notes", Json::array()}}));
    const Json absent = Json::parse(run_check(options, {tree.path("absent.toml")}).out);
    EXPECT_TRUE(absent["errors"][0]["line"].is_null()) << "no place in a file that is not there";
    EXPECT_TRUE(absent["errors"][0]["column"].is_null());
    const CheckRun good = run_check(options, {tree.path("b.toml")});
    EXPECT_EQ(good.code, ctl::kOk);
    EXPECT_EQ(Json::parse(good.out), (Json{{"ok", true},
                                           {"files", {tree.path("b.toml")}},
                                           {"errors", Json::array()},
                                           {"warnings", Json::array()},
                                           {"notes", Json::array()}}));
}

TEST(Check, WarnsOfWhatCannotBeMeant) {
    const TempTree tree{File("a.toml", "[[workqueue]]\nmatch = \"kcryptd-[\"\n")};
    ctl::Options options;
    const CheckRun text = run_check(options, {tree.path("a.toml")});
    EXPECT_EQ(text.code, ctl::kOk);
    EXPECT_EQ(text.out, tree.path("a.toml") + ": ok, 1 rule\n");
    EXPECT_EQ(text.err, tree.path("a.toml") +
                            ":2:1: warning: \"kcryptd-[\" matches no workqueue: its bracket is not closed\n"
                            "    2 | match = \"kcryptd-[\"\n      | ^\n");
    options.json = true;
    const CheckRun run = run_check(options, {tree.path("a.toml")});
    EXPECT_EQ(run.code, ctl::kOk);
    const Json report = Json::parse(run.out);
    EXPECT_EQ(report["ok"], true);
    EXPECT_EQ(report["warnings"][0]["line"], 2);
    EXPECT_EQ(report["warnings"][0]["column"], 1);
}

TEST(Check, AHostTablesFeatureIsAConditionOfTheKernel) {
    const TempTree tree{File("a.toml", "[[host]]\nname = \"a\"\nwhen.has = \"cache_shard\"\n")};
    ctl::Options options;
    options.topology = "synthetic:l3:1 core:4 pu:1";
    EXPECT_THAT(run_check(options, {tree.path("a.toml")}).out,
                testing::HasSubstr("1 host table of which 0 match"));
    options.kernel_scopes = std::vector{Scope::cpu, Scope::cache};
    EXPECT_THAT(run_check(options, {tree.path("a.toml")}).out,
                testing::HasSubstr("1 host table of which 0 match"));
    options.kernel_scopes = std::vector{Scope::cpu, Scope::cache_shard};
    EXPECT_THAT(run_check(options, {tree.path("a.toml")}).out,
                testing::HasSubstr("1 host table of which 1 matches"));
}

TEST(Check, JsonStaysUtf8WhateverAFileIsCalled) {
    ctl::Options options;
    options.json = true;
    EXPECT_FALSE(Json::parse(run_check(options, {"/nonexistent/\xff.toml"}).out)["ok"]);
}

}  // namespace
}  // namespace wq
