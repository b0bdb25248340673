// SPDX-License-Identifier: LGPL-2.1-or-later
#include "experiment/slot.h"

#include <gtest/gtest.h>

#include "temp_tree.h"

namespace wq {
namespace {

Coins two() {
    Coins out;
    out.members = {{"kcryptd", "a\nkey\n", true}, {"write\"back\xff", "other", false}};
    return out;
}

TEST(Coins, ComeBackOnce) {
    test::TempTree tree{test::Dir("run")};
    const std::string path = tree.path("run/slot.json");
    Coins coins = two();
    coins.running = 1;
    ASSERT_TRUE(keep_coins(path, coins));
    const auto back = take_coins(path);
    ASSERT_TRUE(back && *back);
    EXPECT_EQ((*back)->running, 1U);
    ASSERT_EQ((*back)->members.size(), 2U);
    EXPECT_EQ((*back)->members[0].comparison, "a\nkey\n");
    EXPECT_TRUE((*back)->members[0].candidate_first);
    EXPECT_FALSE((*back)->members[1].candidate_first);
    const auto again = take_coins(path);
    ASSERT_TRUE(again);
    EXPECT_FALSE(*again);
}

TEST(Coins, SayWhichArmIsInPlace) {
    Coins coins = two();
    coins.running = 0;
    EXPECT_EQ(coins.side_of(coins.members[0]), Side::candidate);
    EXPECT_EQ(coins.side_of(coins.members[1]), Side::reference);
    coins.running = 1;
    EXPECT_EQ(coins.side_of(coins.members[0]), Side::reference);
    EXPECT_EQ(coins.side_of(coins.members[1]), Side::candidate);
}

TEST(Coins, ABrokenFileIsSaidAndGone) {
    test::TempTree tree{test::Dir("run")};
    tree.write("run/slot.json", "{\"members\": 3");
    EXPECT_FALSE(take_coins(tree.path("run/slot.json")));
    EXPECT_FALSE(tree.exists("run/slot.json"));
}

}  // namespace
}  // namespace wq
