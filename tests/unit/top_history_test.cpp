// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_history.h"

#include <gtest/gtest.h>

namespace wq::ctl {
namespace {

WorkqueueRow row(unsigned id, std::uint64_t items, double wait) {
    WorkqueueRow out;
    out.id = id;
    out.items = items;
    out.per_second = static_cast<double>(items) / 2;
    out.p50 = wait;
    out.p99 = 10 * wait;
    return out;
}

TopInterval interval(std::vector<WorkqueueRow> rows) {
    TopInterval out;
    out.seconds = 2;
    out.workqueues = std::move(rows);
    return out;
}

TEST(TopHistory, HasAPointForEachInterval) {
    TopHistory history;
    history.add(interval({row(1, 10, 5), row(2, 4, 7)}));
    history.add(interval({row(1, 0, 0)}));
    history.add(interval({row(1, 20, 6), row(3, 2, 1)}));
    const auto first = history.of({1, ""});
    ASSERT_EQ(first.size(), 3U);
    EXPECT_EQ(first[0].per_second, 5);
    EXPECT_EQ(first[0].low, 5);
    EXPECT_EQ(first[0].high, 50);
    EXPECT_EQ(first[1].per_second, 0);
    EXPECT_EQ(first[1].seconds, 2);
    EXPECT_FALSE(first[1].high) << "nothing waited";
    EXPECT_EQ(first[2].per_second, 10);
    EXPECT_EQ(history.of({3, ""})[0].per_second, 0) << "it was not there yet";
    EXPECT_EQ(history.of({4, ""}).size(), 3U);
}

TEST(TopHistory, KeepsFunctionsApart) {
    TopHistory history;
    TopInterval one = interval({row(1, 10, 5)});
    one.functions = {{1, "wq", "a", 6, 3, 0.5, 100}, {1, "wq", "b", 4, 2, 0.1, 200}};
    history.add(one);
    EXPECT_EQ(history.of({1, "a"})[0].per_second, 3);
    EXPECT_EQ(history.of({1, "b"})[0].high, 200);
    EXPECT_FALSE(history.of({1, "b"})[0].low);
    EXPECT_EQ(history.of({1, ""})[0].per_second, 5);
}

TEST(TopHistory, ForgetsTheOldest) {
    TopHistory history;
    history.add(interval({row(1, 100, 5), row(2, 100, 5)}));
    for (std::size_t i = 1; i < TopHistory::kMost; i++) history.add(interval({row(1, 10, 5)}));
    EXPECT_EQ(history.of({1, ""}).front().per_second, 50);
    EXPECT_EQ(history.of({2, ""}).front().per_second, 50);
    history.add(interval({row(1, 30, 5)}));
    const auto first = history.of({1, ""});
    ASSERT_EQ(first.size(), TopHistory::kMost);
    EXPECT_EQ(first.front().per_second, 5);
    EXPECT_EQ(first.back().per_second, 15);
    EXPECT_EQ(history.of({2, ""}).front().per_second, 0);
}

}  // namespace
}  // namespace wq::ctl
