// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(IsolatedItems, CountFromTheFirstLookOn) {
    IsolatedItems items;
    items.add({4, 5}, {{1, "events", 100}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("events", 0)));
    items.add({4, 5}, {{1, "events", 130}});
    items.add({4, 5}, {{1, "events", 131}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("events", 31)));
    EXPECT_EQ(items.cpus(), (CpuSet{4, 5}));
}

TEST(IsolatedItems, AWorkqueueThatIsNewBeganAtZero) {
    IsolatedItems items;
    items.add({4}, {{1, "events", 100}});
    items.add({4}, {{1, "events", 100}, {2, "kcryptd", 9}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("events", 0), Pair("kcryptd", 9)));
}

TEST(IsolatedItems, OneAtThePlaceOfAnotherBeganAtZeroToo) {
    IsolatedItems items;
    items.add({4}, {{1, "kcryptd", 100}});
    items.add({4}, {{1, "kcryptd", 7}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("kcryptd", 7)));
    items.add({4}, {{1, "other", 50}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("other", 50)));
}

TEST(IsolatedItems, OthersOfOneNameAreOne) {
    IsolatedItems items;
    items.add({4}, {{1, "xfs", 1}, {2, "xfs", 2}});
    items.add({4}, {{1, "xfs", 11}, {2, "xfs", 22}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("xfs", 30)));
    items.add({4}, {{2, "xfs", 23}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("xfs", 31))) << "a counter does not fall";
    items.add({4}, {{3, "other", 1}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("other", 1)));
    items.add({4}, {{2, "xfs", 5}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("xfs", 5))) << "a series of its own";
}

// Items that the kernel counted on a CPU before it was isolated did not disturb isolated work.
TEST(IsolatedItems, OtherCpusAddNothingBetweenTwoLooks) {
    IsolatedItems items;
    items.add({4}, {{1, "events", 100}});
    items.add({4}, {{1, "events", 110}});
    items.add({4, 5}, {{1, "events", 5000}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("events", 10)));
    items.add({4, 5}, {{1, "events", 5003}});
    EXPECT_THAT(items.items(), ElementsAre(Pair("events", 13)));
    items.add({}, {});
    EXPECT_THAT(items.items(), IsEmpty());
}

}  // namespace
}  // namespace wq
