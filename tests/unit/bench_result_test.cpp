// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench.h"

#include <gmock/gmock.h>

namespace wq::lab {
namespace {

using testing::HasSubstr;

BenchResult host(const std::string& kernel, const BenchResult& shard) {
    return {{"cpu", "Some <CPU>"},      {"cpus", 24},      {"cores", 12},
            {"llc_cores", {8, 4}},      {"virtual", true}, {"kernel", kernel},
            {"cache_shard_size", shard}};
}

Measured measured() {
    Measured out{.rounds = 3};
    for (const std::string load : {"write", "read"}) {
        const std::size_t reference = out.rows.size();
        out.rows.push_back({"cache_shard", 2, {}, {}, "", load, reference});
        out.rows.push_back({"cache", 2, {}, {Effect{1, {}}, "undecided"}, "cache_shard", load, reference});
        out.rows.push_back(
            {"system", 1, {}, {Effect{-20, Effect::Interval{-30, -10}}, "improved"}, "", load, reference});
        out.rows.push_back({"cpu", {}, {}, {Effect{25, {}}, "undecided"}, "", load, reference});
    }
    for (Row& row : out.rows)
        for (const double mb : {90.0, 300.0, 100.0})
            row.runs.push_back({.value = mb,
                                .kworkers = 12,
                                .items_per_s = 3000 * mb,
                                .p50 = 310,
                                .p90 = 3500,
                                .p95 = 10'000,
                                .p99 = 90'500,
                                .pools = 3,
                                .cpu = 2500,
                                .mb_per_s = mb,
                                .io_p50 = 10'000,
                                .io_p99 = 99'000});
    return out;
}

BenchResult example(const Measured& what = measured(), const std::string& kernel = "7.2.13",
                    const BenchResult& shard = 8) {
    return bench_result(1'800'000'000, host(kernel, shard), {6, 16, 2.5, 3}, what);
}

std::string table_of(const BenchResult& result, std::size_t columns = 1000) {
    return bench_table(result, columns, false);
}

TEST(BenchResult, TheTableSaysWhatIsMissing) {
    Measured with_gaps = measured();
    with_gaps.rows[1].runs[0].items_per_s.reset();
    with_gaps.stopped = "interrupted";
    with_gaps.missing = "items";
    BenchResult result = example(with_gaps, "7.2.13", nullptr);
    result["host"]["cpu"] = nullptr;
    EXPECT_THAT(table_of(result), HasSubstr("unknown CPU, 24 CPUs, 12 cores, 2 LLCs of 4 to 8 cores, virtual"
                                            ", kernel 7.2.13\n"));
    EXPECT_THAT(table_of(result), HasSubstr("\nNot seen: items\nEnded early: interrupted\n"));
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

TEST(BenchResult, TheBestHasTheLargestGainOfTheImprovedOfItsLoad) {
    Measured what = measured();
    const auto best = [&] { return example(what)["best"]["write"]; };
    EXPECT_EQ(best(), "system");
    what.rows[3].result.verdict = "improved";
    EXPECT_EQ(best(), "system");
    what.rows[3].result.effect->percent = -30;
    EXPECT_EQ(best(), "cpu");
    what.rows[1].result = {Effect{-50, {}}, "improved"};
    EXPECT_EQ(best(), "cpu") << "a control is none";
    EXPECT_EQ(example(what)["best"]["read"], "system");
    for (Row& row : what.rows) row.result.verdict = "undecided";
    EXPECT_TRUE(best().is_null());
    EXPECT_THAT(table_of(example(what)),
                HasSubstr("\nread: no scope is known to be better than cache_shard, this kernel's.\n"));
}

TEST(BenchResult, TheTableOfEachLoadHoldsIn80Columns) {
    Measured what = measured();
    what.rows[1].result = {Effect{4, Effect::Interval{1, 7}}, "regressed"};
    what.rows[3].pools = 16;
    for (Figures& run : what.rows[3].runs) run.p50 = run.pools = std::nullopt;
    const std::string table = table_of(example(what), 80);
    EXPECT_THAT(table,
                testing::StartsWith(
                    "WRITE        ITEMS/S  P50   P90  P95  P99  POOLS  KW  VERDICT\n"
                    "cache_shard  300000   0.31  3.5  10   90   3      12  reference\n"
                    "cache        300000   0.31  3.5  10   90   3      12  same pods as cache_shard:\n"
                    "                                                      4% worse (1 to 7)\n"
                    "system       300000   0.31  3.5  10   90   3      12  20% better (10 to 30)\n"
                    "cpu          300000   -     3.5  10   90   16     12  undecided\n"
                    "\n"
                    "READ         ITEMS/S  P50   P90  P95  P99  POOLS  KW  VERDICT\n"
                    "cache_shard  300000   0.31  3.5  10   90   3      12  reference\n"
                    "cache        300000   0.31  3.5  10   90   3      12  same pods as cache_shard\n"));
    for (std::size_t at = 0, end = 0; (end = table.find('\n', at)) != std::string::npos; at = end + 1)
        EXPECT_LE(end - at, 80U) << table.substr(at, end - at);
}

}  // namespace
}  // namespace wq::lab
