// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench.h"

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

BenchResult host(const std::string& kernel, const BenchResult& shard) {
    return {{"cpu", "Some <CPU>"},      {"cpus", 24},      {"cores", 12},
            {"llc_cores", {8, 4}},      {"virtual", true}, {"kernel", kernel},
            {"cache_shard_size", shard}};
}

Measured measured() {
    Measured out{.rounds = 3};
    out.rows.push_back({"cache_shard", 2, {}, {}});
    out.rows.push_back(
        {"system", 1, {}, {Effect{-20, Effect::Interval{-30, -10}}, "improved", "", 3, 0.25, 40}});
    out.rows.push_back({"cpu", {}, {}, {Effect{25, {}}, "undecided", "", 3, 1, 1}});
    for (Row& row : out.rows)
        for (const double mb : {90.0, 300.0, 100.0})
            row.runs.push_back({mb, 12, mb, 10'000, 20'000, 90'500, 3000 * mb, 2500});
    return out;
}

BenchResult example(const Measured& what = measured(), const std::string& kernel = "7.2.13",
                    const BenchResult& shard = 8) {
    return bench_result(1'800'000'000, host(kernel, shard), {6, 16, 2.5, 3}, what);
}

std::string table_of(const BenchResult& result) {
    return bench_table(result, 1000, false);
}

TEST(BenchResult, ComesBackFromItsFile) {
    Measured with_gaps = measured();
    with_gaps.rows[1].runs[0].items_per_s.reset();
    with_gaps.stopped = "interrupted";
    with_gaps.missing = "items";
    BenchResult result = example(with_gaps, "7.2.13", nullptr);
    result["host"]["cpu"] = nullptr;
    const auto back = parse_result(result.dump());
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(*back, result);
    EXPECT_EQ(table_of(*back), table_of(result));
    EXPECT_THAT(table_of(result), HasSubstr("unknown CPU, 24 CPUs, 12 cores, 2 LLCs of 4 to 8 cores, virtual"
                                            ", kernel 7.2.13\n"));
    EXPECT_THAT(table_of(result), HasSubstr("\nNot counted: items\nEnded early: interrupted\n"));
}

TEST(BenchResult, MediansNeedTheValueOfEachRun) {
    Measured what = measured();
    BenchResult median = example(what)["scopes"][0]["median"];
    EXPECT_EQ(median["mb_per_s"], 100);
    EXPECT_EQ(median["items_per_s"], 300'000);
    what.rows[0].runs[1].items_per_s.reset();
    EXPECT_TRUE(example(what)["scopes"][0]["median"]["items_per_s"].is_null());
    for (Row& row : what.rows) row.runs.clear();
    EXPECT_TRUE(example(what)["scopes"][0]["median"].is_null());
}

TEST(BenchResult, TheBestHasTheLargestGainOfTheImproved) {
    Measured what = measured();
    EXPECT_EQ(example(what)["best"], "system");
    what.rows[2].result.verdict = "improved";
    EXPECT_EQ(example(what)["best"], "system");
    what.rows[2].result.effect->percent = -30;
    EXPECT_EQ(example(what)["best"], "cpu");
    for (Row& row : what.rows) row.result.verdict = "undecided";
    EXPECT_TRUE(example(what)["best"].is_null());
    EXPECT_THAT(table_of(example(what)),
                HasSubstr("\nNo scope is known to be better than cache_shard, this kernel's.\n"));
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

test::Ran compare(const std::vector<std::string>& words) {
    return test::captured([&] { return test::run_command(ctl::set_up_bench, words); });
}

TEST(BenchCompare, MakesOneTableOfSeveralBoots) {
    test::TempTree tree{{File("a.json", example().dump()),
                         File("b.json", example(measured(), "7.2.14", 32).dump()),
                         File("c.json", example(measured(), "6.12.107", nullptr).dump())}};
    const test::Ran ran =
        compare({"--compare", tree.path("a.json"), tree.path("b.json"), tree.path("c.json")});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("#  KERNEL    SHARD  SCOPE        POOLS  KWORKERS  ITEMS/S  MB/S"));
    EXPECT_THAT(ran.out, HasSubstr("1  7.2.13    8      cache_shard  2      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("2  7.2.14    32     system       1      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("3  6.12.107  -      cpu          -      12        300000   100.0"));
    EXPECT_THAT(ran.out, HasSubstr("b.json: Some <CPU>, 24 CPUs"));
    const test::Ran machines = compare({"--json", "--compare", tree.path("a.json"), tree.path("c.json")});
    const auto all = nlohmann::json::parse(machines.out);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1], nlohmann::json::parse(tree.read("c.json")));
}

TEST(BenchCompare, AFileThatIsNoneIsNamed) {
    const std::string good = example().dump();
    BenchResult wrong = example();
    wrong["scopes"][1]["median"]["mb_per_s"] = "many";
    BenchResult empty = example();
    empty["scopes"].clear();
    for (const auto& [content, says] : {std::pair{std::string(), "empty"},
                                        {"[]", "is not what `bench --save` wrote"},
                                        {R"({"arms": []})", "is not what `bench --save` wrote"},
                                        {R"({"bench": 2})", "has format 2, this program reads 1"},
                                        {R"({"bench": 1})", "key 'scopes' not found"},
                                        {R"({"bench": 1, "scopes": [{}]})", "key 'host' not found"},
                                        {empty.dump(), "has no scope"},
                                        {wrong.dump(), "type must be number, but is string"},
                                        {good.substr(0, good.size() - 1), "cut off"}}) {
        const test::TempTree tree{{File("a.json", good), File("b.json", content)}};
        for (const bool json : {false, true}) {
            std::vector<std::string> words{"--compare", tree.path("a.json"), tree.path("b.json")};
            if (json) words.insert(words.begin(), "--json");
            const test::Ran ran = compare(words);
            EXPECT_EQ(ran.code, 1) << content;
            EXPECT_EQ(ran.out, "");
            EXPECT_THAT(ran.err, testing::StartsWith("wq-tunectl: " + tree.path("b.json") + ": "));
            EXPECT_THAT(ran.err, HasSubstr(says));
        }
    }
    EXPECT_EQ(compare({"--compare", "/nowhere"}).code, 1);
}

}  // namespace
}  // namespace wq::lab
