// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/command.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::lab {
namespace {

using test::File;
using testing::HasSubstr;
using testing::Not;

BenchResult example(const std::string& kernel = "7.2.13", std::optional<unsigned> shard = 8) {
    BenchResult out;
    out.time = 1'800'000'000;
    out.version = "0.2.0";
    out.host = {"Some <CPU>", kernel, 24, 12, {8, 4}, shard, true};
    out.settings = {6, 16, 2.5, 3};
    out.rounds = 3;
    out.rows.push_back({"cache_shard", 2, {}, {}});
    out.rows.push_back(
        {"system", 1, {}, {Effect{-20, Effect::Interval{-30, -10}}, "improved", "", 3, 0.25, 40}});
    out.rows.push_back({"cpu", {}, {}, {Effect{25, {}}, "undecided", "", 3, 1, 1}});
    for (Row& row : out.rows)
        for (const double mb : {90.0, 300.0, 100.0})
            row.runs.push_back({mb, 12, 10'000, 20'000, 90'500, 3000 * mb, 2500});
    return out;
}

TEST(BenchResult, ComesBackFromItsFile) {
    BenchResult result = example();
    result.rows[1].runs[0].items_per_s.reset();
    result.host.cache_shard_size.reset();
    result.host.cpu.reset();
    result.stopped = "interrupted";
    result.missing = "items";
    const auto back = parse_result(to_json(result).dump());
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(to_json(*back), to_json(result));
}

TEST(BenchResult, MediansNeedTheValueOfEachRun) {
    BenchResult result = example();
    EXPECT_EQ(medians_of(result.rows[0]).value, 100);
    EXPECT_EQ(medians_of(result.rows[0]).items_per_s, 300'000);
    result.rows[0].runs[1].items_per_s.reset();
    EXPECT_FALSE(medians_of(result.rows[0]).items_per_s);
}

TEST(BenchResult, TheBestHasTheLargestGainOfTheImproved) {
    BenchResult result = example();
    EXPECT_EQ(best_of(result)->arm, "system");
    result.rows[2].result.verdict = "improved";
    EXPECT_EQ(best_of(result)->arm, "system");
    result.rows[2].result.effect->percent = -30;
    EXPECT_EQ(best_of(result)->arm, "cpu");
    for (Row& row : result.rows) row.result.verdict = "undecided";
    EXPECT_EQ(best_of(result), nullptr);
    EXPECT_EQ(finding(result), "No scope is known to be better than cache_shard, this kernel's.");
}

TEST(BenchResult, TheHostIsNamedByWhatMatters) {
    EXPECT_EQ(
        host_text(example().host),
        "Some <CPU>, 24 CPUs, 12 cores, 2 LLCs of 4 to 8 cores, virtual, kernel 7.2.13, cache_shard_size 8");
}

TEST(BenchResult, ThePageEscapesAndLoadsNothing) {
    const std::string page = bench_page(example(), "");
    EXPECT_THAT(page, HasSubstr("Some &lt;CPU&gt;"));
    EXPECT_THAT(page, HasSubstr("default-src 'none'"));
    EXPECT_THAT(page, HasSubstr("20% better (10 to 30), improved"));
    EXPECT_THAT(page, HasSubstr("system against cache_shard"));
    EXPECT_THAT(page, Not(HasSubstr("href=\"http")));
    EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(BenchResult, WhatIsNoResultIsRefused) {
    const std::string good = to_json(example()).dump();
    for (const auto& [text, says] :
         std::vector<std::pair<std::string, std::string>>{{"", "empty"},
                                                          {"[]", "is not what"},
                                                          {R"({"arms": []})", "is not what"},
                                                          {R"({"bench": 2})", "format 2"},
                                                          {R"({"bench": 1})", "key 'time' not found"},
                                                          {good.substr(0, good.size() - 1), "cut off"}}) {
        const auto result = parse_result(text);
        ASSERT_FALSE(result) << text;
        EXPECT_THAT(result.error().text, HasSubstr(says));
    }
}

struct Ran {
    int code = -1;
    std::string out, err;
};

Ran compare(const std::vector<std::string>& words) {
    Ran ran;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    ran.code = test::run_command(ctl::set_up_bench, words);
    ran.out = testing::internal::GetCapturedStdout();
    ran.err = testing::internal::GetCapturedStderr();
    return ran;
}

TEST(BenchCompare, MakesOneTableOfSeveralBoots) {
    test::TempTree tree{{File("a.json", to_json(example()).dump()),
                         File("b.json", to_json(example("7.2.14", 32)).dump()),
                         File("c.json", to_json(example("6.12.107", {})).dump())}};
    const Ran ran = compare({"--compare", tree.path("a.json"), tree.path("b.json"), tree.path("c.json")});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("#  KERNEL    SHARD  SCOPE        POOLS  KWORKERS  ITEMS/S  MB/S"));
    EXPECT_THAT(ran.out, HasSubstr("1  7.2.13    8      cache_shard  2      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("2  7.2.14    32     system       1      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("3  6.12.107  -      cpu          -      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("b.json: Some <CPU>, 24 CPUs"));
    const Ran machines = compare({"--json", "--compare", tree.path("a.json"), tree.path("c.json")});
    const auto all = nlohmann::json::parse(machines.out);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1], nlohmann::json::parse(tree.read("c.json")));
}

TEST(BenchCompare, AFileThatIsNoneIsNamed) {
    test::TempTree tree{{File("a.json", to_json(example()).dump()), File("b.json", "{}")}};
    const Ran ran = compare({"--compare", tree.path("a.json"), tree.path("b.json")});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "wq-tunectl: " + tree.path("b.json") + ": is not what `bench --save` wrote\n");
    EXPECT_EQ(compare({"--compare", tree.path("nothing")}).code, 1);
}

}  // namespace
}  // namespace wq::lab
