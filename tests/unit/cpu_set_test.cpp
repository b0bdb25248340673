// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/cpu_set.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace wq
