// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bpf/work_monitor.h"

namespace wq::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

WorkqueueRow row(const std::string& name, double per_second, std::optional<double> p99 = {}) {
    WorkqueueRow out;
    out.now.name = name;
    out.now.started = 123'456;
    out.now.completed = 123'453;
    out.now.unbound = true;
    out.now.cpu_time_us = 8'400'000;
    out.now.repatriated = 12;
    out.per_second = per_second;
    out.cpu = 0.254;
    out.p50 = out.p90 = out.p99 = p99;
    return out;
}

std::vector<std::string> names_of(const TopTable& table) {
    std::vector<std::string> out;
    for (const auto& line : table.rows) out.push_back(line.substr(0, line.find(' ')));
    return out;
}

TEST(TopTable, ShowsMoreWhereThereIsMoreRoom) {
    const std::vector rows{row("kcryptd-254:0-1", 1234, 84'000)};
    EXPECT_EQ(lay_out(rows, {"rate"}, 40).header, "WORKQUEUE        INFL ITEMS/S   P99");
    EXPECT_EQ(lay_out(rows, {"rate"}, 40).rows.at(0), "kcryptd-254:0-1     3    1234  84us");
    EXPECT_EQ(lay_out(rows, {"rate"}, 80).header,
              "WORKQUEUE         TOTAL  INFL ITEMS/S   CPU%   P50   P90   P99  LOCK CPUTIME");
    EXPECT_EQ(lay_out(rows, {"rate"}, 80).rows.at(0),
              "kcryptd-254:0-1    123k     3    1234   25.4  84us  84us  84us     -    8.4s");
    EXPECT_EQ(
        lay_out(rows, {"rate"}, 160).header,
        "WORKQUEUE         TOTAL  INFL ITEMS/S   CPU%   P50   P90   P99  LOCK CPUTIME  HOGS CMW/RPR MAYDAY "
        "RESCUED");
    EXPECT_EQ(
        lay_out(rows, {"rate"}, 160).rows.at(0),
        "kcryptd-254:0-1    123k     3    1234   25.4  84us  84us  84us     -    8.4s     -      12      - "
        "      -");
}

TEST(TopTable, IsNeverWiderThanItMayBe) {
    const std::vector rows{row("a-name-of-31-characters-in-all-", 1e12, 1e18), row("short", 0)};
    FunctionRow function;
    function.function = "a_function_with_a_long_name [a_module]";
    function.workqueue = "a-name-of-31-characters-in-all-";
    for (std::size_t width = 1; width < 170; width++) {
        for (const auto& table : {lay_out(rows, {"rate"}, width), lay_out({function}, {"busy"}, width)}) {
            EXPECT_LE(table.header.size(), width);
            for (const auto& line : table.rows) EXPECT_LE(line.size(), width) << line;
        }
    }
}

TEST(TopTable, KeepsBothEndsOfALongName) {
    const std::vector rows{row("kcryptd_io-254:100-1", 1), row("kcryptd_io-254:101-1", 1)};
    EXPECT_THAT(names_of(lay_out(rows, {"name"}, 37)), ElementsAre("kcryptd_~54:100-1", "kcryptd_~54:101-1"));
}

TEST(TopTable, SortsNumbersDownAndNamesUp) {
    const std::vector rows{row("b", 1, 100), row("a", 3), row("c", 2, 300)};
    EXPECT_THAT(names_of(lay_out(rows, {"rate"}, 80)), ElementsAre("a", "c", "b"));
    EXPECT_THAT(names_of(lay_out(rows, {"rate", true}, 80)), ElementsAre("b", "c", "a"));
    EXPECT_THAT(names_of(lay_out(rows, {"name"}, 80)), ElementsAre("a", "b", "c"));
    EXPECT_THAT(names_of(lay_out(rows, {"name", true}, 80)), ElementsAre("c", "b", "a"));
    EXPECT_THAT(names_of(lay_out(rows, {"p99"}, 80)), ElementsAre("c", "b", "a")) << "no wait comes last";
    EXPECT_THAT(names_of(lay_out(rows, {"total"}, 80)), ElementsAre("a", "b", "c")) << "equals by name";
}

TEST(TopTable, EveryKeySorts) {
    auto high = row("low-by-name", 5, 5), low = row("a", 1, 1);
    high.now.unbound = low.now.unbound = false;
    high.now.managed = low.now.managed = true;
    high.now.mem_reclaim = low.now.mem_reclaim = true;
    high.now.started = 10'000'000;
    high.cpu = high.now.cpu_time_us = 100'000'000;
    high.now.cpu_intensive = high.now.cm_wakeup = high.now.mayday = high.now.rescued = 1;
    high.lock = 1;
    for (const auto& key : sort_keys(false)) {
        const auto first = key == "name" ? "a" : "low-by-name";
        EXPECT_EQ(names_of(lay_out({low, high}, {key}, 160)).at(0), first) << key;
    }
}

TEST(TopTable, TellsWhereTheSortedColumnIs) {
    const std::vector rows{row("kcryptd-254:0-1", 1)};
    const auto table = lay_out(rows, {"p99"}, 80);
    EXPECT_THAT(table.header.substr(table.sorted_at, table.sorted_width), HasSubstr("P99"));
    EXPECT_EQ(lay_out(rows, {"name"}, 80).sorted_at, 0U);
    EXPECT_EQ(lay_out(rows, {"rescued"}, 40).sorted_width, 0U);
}

TEST(TopTable, MarksATotalThatBeganAnew) {
    auto one = row("a", 1);
    one.was_reset = true;
    EXPECT_THAT(lay_out({one}, {"rate"}, 80).rows.at(0), HasSubstr("123k*"));
}

TEST(TopTable, WhatCannotHappenIsNotZero) {
    auto one = row("a", 1);
    one.now.unbound = false;
    one.now.managed = true;
    one.now.mem_reclaim = true;
    EXPECT_THAT(lay_out({one}, {"rate"}, 160).rows.at(0), testing::EndsWith("     0       0      0       0"));
    one.now.managed = false;  // WQ_CPU_INTENSIVE
    EXPECT_THAT(lay_out({one}, {"rate"}, 160).rows.at(0),
                testing::EndsWith("8.4s     -       -      0       0"));
    one.now.bh = true;
    one.cpu.reset();
    EXPECT_THAT(lay_out({one}, {"rate"}, 160).rows.at(0), HasSubstr(" 1      -     -"));
    EXPECT_THAT(lay_out({one}, {"rate"}, 160).rows.at(0),
                testing::EndsWith("-     -       -      0       0"));
}

TEST(TopTable, NamesDoNotReachTheTerminalAsTheyAre) {
    EXPECT_THAT(lay_out({row("a\x1b[2J", 1)}, {"rate"}, 80).rows.at(0), Not(HasSubstr("\x1b")));
}

TEST(TopTable, Functions) {
    FunctionRow one;
    one.function = "kcryptd_crypt [dm_crypt]";
    one.workqueue = "kcryptd-254:0-1";
    one.items = 120;
    one.per_second = 60;
    one.busy = 1.5;
    one.mean = 25e6;
    const auto table = lay_out({one}, {"busy"}, 80);
    EXPECT_EQ(table.header, "FUNCTION                 WORKQUEUE            ITEMS/S  BUSY%  MEAN   ITEMS");
    EXPECT_EQ(table.rows.at(0), "kcryptd_crypt [dm_crypt] kcryptd-254:0-1           60  150.0  25ms     120");
    EXPECT_EQ(lay_out({one}, {"busy"}, 40).header, "FUNCTION                 ITEMS/S  BUSY%");
}

TEST(TopTable, EveryKeyOfFunctionsSorts) {
    FunctionRow high, low;
    high.function = high.workqueue = "z";
    low.function = low.workqueue = "a";
    high.items = 2;
    high.per_second = high.busy = high.mean = 2;
    low.items = 1;
    low.per_second = low.busy = low.mean = 1;
    for (const auto& key : sort_keys(true)) {
        const auto first = key == "name" || key == "workqueue" ? "a" : "z";
        EXPECT_EQ(names_of(lay_out({low, high}, {key}, 160)).at(0), first) << key;
        EXPECT_NE(names_of(lay_out({low, high}, {key, true}, 160)).at(0), first) << key << " reversed";
    }
}

TEST(TopTable, CountsHaveFourDigits) {
    EXPECT_EQ(count_text(0), "0");
    EXPECT_EQ(count_text(0.26), "0.3");
    EXPECT_EQ(count_text(9.94), "9.9");
    EXPECT_EQ(count_text(9.96), "10");
    EXPECT_EQ(count_text(9999), "9999");
    EXPECT_EQ(count_text(9999.6), "10.0k");
    EXPECT_EQ(count_text(99'960), "100k");
    EXPECT_EQ(count_text(999'600), "1.0M");
    EXPECT_EQ(count_text(18.4e18), "18400P");
}

TEST(TopTable, Times) {
    EXPECT_EQ(time_text(0), "0ns");
    EXPECT_EQ(time_text(999.4), "999ns");
    EXPECT_EQ(time_text(999.6), "1.0us");
    EXPECT_EQ(time_text(8'440), "8.4us");
    EXPECT_EQ(time_text(84'400), "84us");
    EXPECT_EQ(time_text(999'600), "1.0ms");
    EXPECT_EQ(time_text(1e9), "1.0s");
    EXPECT_EQ(time_text(84e9), "84s");
    EXPECT_EQ(time_text(123'456e9), "123ks");
}

}  // namespace
}  // namespace wq::ctl
