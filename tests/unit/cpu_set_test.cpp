// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/cpu_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

namespace wq {
namespace {

TEST(CpuSetList, ReadsWhatTheKernelPrints) {
    EXPECT_EQ(CpuSet::parse_list("0-3,8\n"), (CpuSet{0, 1, 2, 3, 8}));
    EXPECT_EQ(CpuSet::parse_list("0-7:2/4"), (CpuSet{0, 1, 4, 5}));
    EXPECT_EQ(CpuSet::parse_list("\n"), CpuSet{});
    EXPECT_EQ(CpuSet::parse_list("70")->first(), 70U);
}

TEST(CpuSetList, PrintsWhatTheKernelPrints) {
    EXPECT_EQ(CpuSet::parse_list("1,0,2,88-95,63,64")->list(), "0-2,63-64,88-95");
    EXPECT_EQ(CpuSet{}.list(), "");
}

TEST(CpuSetList, RefusesGarbage) {
    for (const char* text : {"a", "1-", "-1", "3-1", "1,", ",", "1 2", "0-2147483648", "65536", "0-1:0/1",
                             "0-1:2/1", "99999999999999999999", "0x1", "1,,2"})
        EXPECT_FALSE(CpuSet::parse_list(text)) << text;
    EXPECT_FALSE(CpuSet::parse_list(std::string(1 << 20, '7')));
}

TEST(CpuSetMask, ReadsWhatTheKernelPrints) {
    EXPECT_EQ(CpuSet::parse_mask("ff\n"), CpuSet::range(0, 7));
    EXPECT_EQ(CpuSet::parse_mask("3,00000000,80000000"), (CpuSet{31, 64, 65}));
    EXPECT_EQ(CpuSet::parse_mask("0"), CpuSet{});
}

TEST(CpuSetMask, RefusesGarbage) {
    for (const char* text : {"", "\n", "xyz", "100000000", "1,,1", "1,", "-1"})
        EXPECT_FALSE(CpuSet::parse_mask(text)) << text;
}

TEST(CpuSet, AlgebraKeepsEqualSetsEqual) {
    CpuSet a{1, 200};
    a.remove(200);
    EXPECT_EQ(a, CpuSet{1});
    EXPECT_EQ((CpuSet{1, 300} & CpuSet{1, 2}), CpuSet{1});
    EXPECT_EQ((CpuSet{1, 300} - CpuSet{300}), CpuSet{1});
    EXPECT_TRUE((CpuSet{1, 300}.contains(CpuSet{300})));
    EXPECT_FALSE((CpuSet{1}.contains(CpuSet{300})));
    EXPECT_FALSE((CpuSet{1}.intersects(CpuSet{300})));
    EXPECT_EQ((CpuSet{1, 2} | CpuSet{300}).count(), 3U);
}

using Plain = std::set<unsigned>;

CpuSet from_plain(const Plain& plain) {
    CpuSet out;
    for (const unsigned cpu : plain) out.add(cpu);
    return out;
}

// Some words are full, some have one CPU, most are empty.
Plain random_plain(std::mt19937& random) {
    Plain out;
    for (unsigned run = random() % 5; run > 0; run--) {
        const unsigned first = random() % 2000;
        const unsigned length = random() % 2 == 0 ? 1 : random() % 200;
        for (unsigned cpu = first; cpu < first + length; cpu++) out.insert(cpu);
    }
    return out;
}

TEST(CpuSet, IsAPlainSetWithGapsOrWithout) {
    std::mt19937 random(1);
    for (int i = 0; i < 2000; i++) {
        const Plain a = random_plain(random);
        const Plain b = random_plain(random);
        Plain either;
        Plain both;
        Plain only_a;
        std::ranges::set_union(a, b, std::inserter(either, either.end()));
        std::ranges::set_intersection(a, b, std::inserter(both, both.end()));
        std::ranges::set_difference(a, b, std::inserter(only_a, only_a.end()));
        const CpuSet x = from_plain(a);
        const CpuSet y = from_plain(b);
        SCOPED_TRACE(x.list() + " and " + y.list());
        ASSERT_EQ(x.cpus(), std::vector<unsigned>(a.begin(), a.end()));
        ASSERT_EQ(x.count(), a.size());
        ASSERT_EQ(x | y, from_plain(either));
        ASSERT_EQ(x & y, from_plain(both));
        ASSERT_EQ(x - y, from_plain(only_a));
        ASSERT_EQ(x == y, a == b);
        ASSERT_EQ(x.intersects(y), !both.empty());
        ASSERT_EQ(x.contains(y), both == b);
        ASSERT_EQ(CpuSet::parse_list(x.list()), x);
        if (a.empty()) continue;
        ASSERT_EQ(x.first(), *a.begin());
        ASSERT_TRUE(x.has(*a.rbegin()));
        ASSERT_FALSE(x.has(*a.rbegin() + 1));
        CpuSet without = x;
        without.remove(*a.begin());
        ASSERT_EQ(without | CpuSet{*a.begin()}, x);
        ASSERT_EQ(without.count() + 1, x.count());
    }
}

}  // namespace
}  // namespace wq
