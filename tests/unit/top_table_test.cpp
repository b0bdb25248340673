// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include "ctl/observe/top_table.h"
#include "fake_monitor.h"

namespace wq::ctl {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Not;

// ---- top rates

WorkSample at(double seconds, std::vector<KernelWorkqueue> workqueues,
              std::map<std::uint64_t, WorkTimes> times = {}) {
    WorkSample out;
    out.seconds = seconds;
    out.workqueues = std::move(workqueues);
    out.times = std::move(times);
    return out;
}

TEST(TopRates, RatesArePerSecondOfTheIntervalAsItWas) {
    TopRates rates;
    auto before = workqueue(1, "a", 100);
    auto after = workqueue(1, "a", 150);
    before.cpu_time_us = 1'000'000;
    after.cpu_time_us = 2'000'000;
    EXPECT_FALSE(rates.add(at(10, {before}))) << "the first sample is no interval";
    const auto interval = rates.add(at(12.5, {after}));
    ASSERT_TRUE(interval);
    EXPECT_DOUBLE_EQ(interval->seconds, 2.5);
    const auto& row = interval->workqueues.at(0);
    EXPECT_EQ(row.items, 50U);
    EXPECT_DOUBLE_EQ(row.per_second, 20);
    EXPECT_DOUBLE_EQ(row.cpu.value(), 0.4);
    EXPECT_EQ(row.now.started, 150U);
    EXPECT_FALSE(row.reset);
}

TEST(TopRates, PoolsSetAnewAreNoNegativeRate) {
    TopRates rates;
    auto before = workqueue(1, "a", 1000);
    before.cpu_time_us = 500;
    auto after = workqueue(1, "a", 750);  // one of four pools is gone
    after.pools = 77;
    after.cpu_time_us = 400;
    rates.add(at(1, {before}, {times(1, 100, 50)}));
    const auto row = rates.add(at(3, {after}, {times(1, 110, 50)}))->workqueues.at(0);
    EXPECT_TRUE(row.reset);
    EXPECT_EQ(row.items, 10U);
    EXPECT_DOUBLE_EQ(row.per_second, 5);
    EXPECT_FALSE(row.cpu);
    after.started = 760;
    after.cpu_time_us = 600;
    const auto later = rates.add(at(4, {after}, {times(1, 110, 50)}))->workqueues.at(0);
    EXPECT_FALSE(later.reset);
    EXPECT_EQ(later.items, 10U) << "the kernel's count is good again";
    EXPECT_DOUBLE_EQ(later.cpu.value(), 200e-6);
}

// The new pools may have counted more than the old ones had, or nothing.
TEST(TopRates, PoolsSetAnewShowWhereTheTotalGrewNonetheless) {
    for (const unsigned grown : {500U, 0U}) {
        TopRates rates;
        auto after = workqueue(1, "a", grown);
        after.pools = 77;
        rates.add(at(1, {workqueue(1, "a", 10)}, {times(1, 10, 50)}));
        const auto row = rates.add(at(2, {after}, {times(1, 10 + grown, 50)}))->workqueues.at(0);
        EXPECT_TRUE(row.reset);
        EXPECT_EQ(row.items, grown);
        EXPECT_FALSE(row.cpu);
    }
}

TEST(TopRates, AWorkqueueThatIsNewBeganWithNothing) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a", 7)}));
    const auto interval = rates.add(at(2, {workqueue(1, "a", 7), workqueue(2, "a", 3)}));  // of one name
    EXPECT_EQ(interval->workqueues[1].items, 3U);
    EXPECT_FALSE(interval->workqueues[1].reset);
    // A new workqueue at an address that has become free.
    const auto next = rates.add(at(3, {workqueue(1, "c", 5)}));
    ASSERT_THAT(next->workqueues, testing::SizeIs(1));
    EXPECT_EQ(next->workqueues[0].items, 5U);
    EXPECT_FALSE(next->workqueues[0].reset);
    EXPECT_EQ(next->workqueues[0].id, 3U);
}

TEST(TopRates, WaitsAreThoseOfTheInterval) {
    TopRates rates;
    const unsigned fast = wq_bucket_by(1000, kTimeBits);
    const unsigned slow = wq_bucket_by(1'000'000, kTimeBits);
    auto now = times(1, 1000, fast, 50).second;
    now.enqueued.assign(now.waited.size(), 7);
    rates.add(at(1, {workqueue(1, "a")}, {{1, now}}));
    now.waited[slow] = 10;
    now.queued += 4;
    now.lock_ns += 4000;
    now.enqueued[fast] += 98;
    now.enqueued[slow] += 2;
    const auto row = rates.add(at(2, {workqueue(1, "a")}, {{1, now}}))->workqueues.at(0);
    EXPECT_EQ(row.timed, 10U);
    EXPECT_NEAR(*row.p50, 1e6, 1e6 / 8);
    EXPECT_NEAR(*row.p99, 1e6, 1e6 / 8);
    EXPECT_DOUBLE_EQ(*row.lock, 1000);
    for (const auto& time : {row.q50, row.q90, row.q95}) EXPECT_NEAR(*time, 1000, 1000 / 8.0);
    EXPECT_NEAR(*row.q99, 1e6, 1e6 / 8);
    const auto none = rates.add(at(3, {workqueue(1, "a"), workqueue(2, "b")}, {{1, now}}));
    ASSERT_EQ(none->workqueues.size(), 2U);
    for (const auto& idle : none->workqueues) {
        EXPECT_EQ(idle.timed, 0U);
        EXPECT_FALSE(idle.p50 || idle.p90 || idle.p99 || idle.lock) << "without items there is no wait";
        EXPECT_FALSE(idle.q50 || idle.q90 || idle.q95 || idle.q99);
    }
}

TEST(TopRates, BucketsWrapAround) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a")}, {times(1, 0xfffffff0U, 50)}));
    const auto interval = rates.add(at(2, {workqueue(1, "a")}, {times(1, 0x10U, 50)}));
    EXPECT_EQ(interval->workqueues.at(0).timed, 0x20U);
}

// The monitor drops the data of a workqueue that is gone; a new one at the same address starts at zero.
TEST(TopRates, WhatComesBackAtAnAddressIsTimedFromItsBeginning) {
    TopRates rates;
    rates.add(at(1, {workqueue(1, "a")}, {times(1, 100, 50, 10)}));
    rates.add(at(2, {}, {times(1, 100, 50, 10)}));
    const auto row = rates.add(at(3, {workqueue(1, "a", 5)}, {times(1, 5, 50, 20)}))->workqueues.at(0);
    EXPECT_EQ(row.timed, 5U);
    EXPECT_DOUBLE_EQ(*row.lock, 20);
}

TEST(TopRates, FunctionsAreThoseWithItems) {
    TopRates rates;
    auto before = at(1, {workqueue(1, "a"), workqueue(2, "b")});
    before.functions = {{{1, 10}, {"f", 100, 1'000'000'000}}, {{2, 10}, {"f", 5, 1}}};
    auto after = before;
    after.seconds = 3;
    after.functions[{1, 10}] = {"f", 104, 2'000'000'000};
    after.functions[{2, 11}] = {"g", 1, 500};
    after.functions[{9, 11}] = {"g", 1, 500};  // of a workqueue that is not on the list
    after.lost = 7;
    rates.add(before);
    const auto interval = rates.add(after);
    EXPECT_EQ(interval->lost, 7U);
    ASSERT_THAT(interval->functions, testing::SizeIs(2));
    const auto& f = interval->functions[0];
    EXPECT_EQ(f.function + "@" + f.workqueue, "f@a");
    EXPECT_EQ(f.items, 4U);
    EXPECT_DOUBLE_EQ(f.per_second, 2);
    EXPECT_DOUBLE_EQ(f.busy, 0.5);
    EXPECT_DOUBLE_EQ(f.mean, 250e6);
    EXPECT_EQ(interval->functions[1].function + "@" + interval->functions[1].workqueue, "g@b");
}

// ---- top table

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
    out.q50 = 2000;
    out.q90 = 3000;
    out.q95 = 4000;
    out.q99 = 9000;
    return out;
}

FunctionRow function(const std::string& name, const std::string& workqueue, unsigned size) {
    return {1, workqueue, name, 60ULL * size, 30.0 * size, 0.75 * size, 12.5e6 * size};
}

template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows, const TopOrder& order,
                                  std::size_t width = 80) {
    std::vector<std::string> out;
    for (const auto& line : lay_out(rows, order, width).rows) out.push_back(line.substr(0, line.find(' ')));
    return out;
}

TEST(TopTable, ShowsMoreWhereThereIsMoreRoom) {
    const std::vector rows{row("kcryptd-254:0-1", 1234, 84'000)};
    const std::vector functions{function("kcryptd_crypt [dm_crypt]", "kcryptd-254:0-1", 2)};
    const auto text = [&](std::size_t width, bool of_functions = false) {
        const auto table =
            of_functions ? lay_out(functions, {"busy"}, width) : lay_out(rows, {"rate"}, width);
        return table.header + "\n" + table.rows.at(0);
    };
    EXPECT_EQ(text(40),
              "WORKQUEUE        INFL ITEMS/S   P99\n"
              "kcryptd-254:0-1     3    1234  84us");
    EXPECT_EQ(text(80),
              "WORKQUEUE         TOTAL  INFL ITEMS/S   CPU%   P50   P90   P99  LOCK   Q50   Q99\n"
              "kcryptd-254:0-1    123k     3    1234   25.4  84us  84us  84us     - 2.0us 9.0us");
    EXPECT_EQ(text(160),
              "WORKQUEUE         TOTAL  INFL ITEMS/S   CPU%   P50   P90   P99  LOCK   Q50   Q90   Q95   Q99 "
              "CPUTIME "
              " HOGS CMW/RPR MAYDAY RESCUED\n"
              "kcryptd-254:0-1    123k     3    1234   25.4  84us  84us  84us     - 2.0us 3.0us 4.0us 9.0us  "
              "  8.4s "
              "    -      12      -       -");
    EXPECT_EQ(text(80, true),
              "FUNCTION                 WORKQUEUE            ITEMS/S  BUSY%  MEAN   ITEMS\n"
              "kcryptd_crypt [dm_crypt] kcryptd-254:0-1           60  150.0  25ms     120");
    EXPECT_EQ(text(40, true),
              "FUNCTION                 ITEMS/S  BUSY%\n"
              "kcryptd_crypt [dm_crypt]      60  150.0");
}

TEST(TopTable, IsNeverWiderThanItMayBe) {
    const std::vector rows{row("a-name-of-31-characters-in-all-", 1e12, 1e18), row("short", 0)};
    const std::vector functions{
        function("a_function_with_a_long_name [a_module]", "a-name-of-31-characters-in-all-", 1)};
    for (std::size_t width = 1; width < 170; width++) {
        for (const auto& table : {lay_out(rows, {"rate"}, width), lay_out(functions, {"busy"}, width)}) {
            EXPECT_LE(table.header.size(), width);
            for (const auto& line : table.rows) EXPECT_LE(line.size(), width) << line;
        }
    }
}

TEST(TopTable, NamesAreCutInTheMiddleAndHarmlessToATerminal) {
    const std::vector rows{row("kcryptd_io-254:100-1", 1), row("kcryptd_io-254:101-1", 1)};
    EXPECT_THAT(names_of(rows, {"name"}, 37), ElementsAre("kcryptd_~54:100-1", "kcryptd_~54:101-1"));
    EXPECT_THAT(names_of(std::vector{row("a\x1b[2J", 1)}, {"rate"}),
                ElementsAre(Not(testing::HasSubstr("\x1b"))));
}

TEST(TopTable, SortsNumbersDownAndNamesUp) {
    const std::vector rows{row("b", 1, 100), row("a", 3), row("c", 2, 300)};
    EXPECT_THAT(names_of(rows, {"rate"}), ElementsAre("a", "c", "b"));
    EXPECT_THAT(names_of(rows, {"rate", true}), ElementsAre("b", "c", "a"));
    EXPECT_THAT(names_of(rows, {"name"}), ElementsAre("a", "b", "c"));
    EXPECT_THAT(names_of(rows, {"name", true}), ElementsAre("c", "b", "a"));
    EXPECT_THAT(names_of(rows, {"p99"}), ElementsAre("c", "b", "a")) << "no wait comes last";
    EXPECT_THAT(names_of(rows, {"total"}), ElementsAre("a", "b", "c")) << "equals by name";
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
    low.q50 = low.q90 = low.q95 = low.q99 = 1;
    for (const auto& key : sort_keys(false)) {
        const auto first = key == "name" ? "a" : "low-by-name";
        EXPECT_EQ(names_of(std::vector{low, high}, {key}, 160).at(0), first) << key;
    }
    const std::vector functions{function("a", "a", 1), function("z", "z", 2)};
    for (const auto& key : sort_keys(true)) {
        const auto first = key == "name" || key == "workqueue" ? "a" : "z";
        EXPECT_EQ(names_of(functions, {key}, 160).at(0), first) << key;
        EXPECT_NE(names_of(functions, {key, true}, 160).at(0), first) << key << " reversed";
    }
}

TEST(TopTable, WhatCannotHappenIsNotZero) {
    auto one = row("a", 1);
    const auto line = [&] { return lay_out(std::vector{one}, {"rate"}, 160).rows.at(0); };
    one.now.unbound = false;
    one.now.managed = one.now.mem_reclaim = true;
    EXPECT_THAT(line(), EndsWith("     0       0      0       0"));
    one.now.managed = false;  // WQ_CPU_INTENSIVE
    EXPECT_THAT(line(), EndsWith("8.4s     -       -      0       0"));
    one.now.bh = true;
    one.cpu.reset();
    EXPECT_THAT(line(), testing::HasSubstr(" 1      -     -"));
    EXPECT_THAT(line(), EndsWith("-     -       -      0       0"));
}

TEST(TopTable, NumbersAreShort) {
    const std::pair<double, const char*> counts[] = {
        {0, "0"},          {0.26, "0.3"},    {9.94, "9.9"},     {9.96, "10"},       {9999, "9999"},
        {9999.6, "10.0k"}, {99'960, "100k"}, {999'600, "1.0M"}, {18.4e18, "18400P"}};
    for (const auto& [value, text] : counts) EXPECT_EQ(count_text(value), text);
    const std::pair<double, const char*> times[] = {{0, "0ns"},       {999.4, "999ns"}, {999.6, "1.0us"},
                                                    {8'440, "8.4us"}, {84'400, "84us"}, {999'600, "1.0ms"},
                                                    {1e9, "1.0s"},    {84e9, "84s"},    {123'456e9, "123ks"}};
    for (const auto& [ns, text] : times) EXPECT_EQ(time_text(ns), text);
}

TEST(TopTable, HelpFitsA24LineTerminalAndExplainsTheColumns) {
    const auto lines = help_lines();
    EXPECT_LE(lines.size(), 22U);
    for (const auto& line : lines) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_THAT(lines, testing::Contains("  P50 P90 P99     wait from queueing to start, lock included"));
    EXPECT_THAT(lines, testing::Contains("                  unbound: workers moved back into their scope"));
    EXPECT_THAT(lines.back(), "  MEAN            of a function: time from start to end");
}

}  // namespace
}  // namespace wq::ctl
