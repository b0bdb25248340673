// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/quantity.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

struct Case {
    const char* range;
    Numbers inside;
    Numbers outside;  // each number on its own
};

TEST(NumberRange, HasTheNumbersThatItSays) {
    const std::vector<Case> cases = {
        {"12", {12}, {11, 13}},
        {">=16", {16, 17, 4000000000}, {0, 15}},
        {">8", {9}, {8}},
        {"<8", {0, 7}, {8}},
        {"<=8", {8}, {9}},
        {"8-16", {8, 12, 16}, {7, 17}},
        {">=8,<64", {8, 63}, {7, 64}},
        {" >= 8 , < 64 ", {8, 63}, {7, 64}},
        {"8 - 16", {8, 16}, {7, 17}},
        {"3-3", {3}, {2, 4}},
        {">8,<8", {}, {7, 8, 9}},
    };
    for (const Case& one : cases) {
        const auto range = NumberRange::of_numbers(one.range);
        ASSERT_TRUE(range) << one.range;
        for (unsigned number : one.inside) EXPECT_TRUE(range->has({number})) << one.range << ": " << number;
        for (unsigned number : one.outside) EXPECT_FALSE(range->has({number})) << one.range << ": " << number;
    }
}

TEST(NumberRange, RefusesWhatIsNoRange) {
    for (const char* text : {"", " ", "x", ">=", "=>8", ">=x", "8-", "-8", "16-8", "8-12-16", "1,", ",1",
                             "8.5", "6.6", "99999999999", ">=8 <64", "12x", "+1"})
        EXPECT_FALSE(NumberRange::of_numbers(text)) << text;
    for (const char* text : {"", "6.", ".6", "6..6", "v6.6", ">=6.6-rc1", "7.0-6.6", "1.2.3.4.5"})
        EXPECT_FALSE(NumberRange::of_versions(text)) << text;
}

bool has(const char* range, const char* release) {
    return NumberRange::of_versions(range).value().has(leading_numbers(release));
}

TEST(NumberRange, ComparesVersionsByNumber) {
    EXPECT_TRUE(has(">=6.6", "6.6.0"));
    EXPECT_TRUE(has(">=6.6", "6.12.57+deb13-amd64"));
    EXPECT_TRUE(has(">=6.6", "7.0-rc3"));
    EXPECT_FALSE(has(">=6.6", "6.5.13"));
    EXPECT_FALSE(has(">=6.6", "5.19.0"));
    EXPECT_TRUE(has("6.6-7.0", "6.18.23"));
    EXPECT_TRUE(has("<6.12.82", "6.12.9"));
    EXPECT_FALSE(has("<6.12.82", "6.12.82"));
    EXPECT_TRUE(has("6.12.0", "6.12"));
}

TEST(NumberRange, AVersionIsComparedInAsManyNumbersAsAreWritten) {
    EXPECT_TRUE(has("6.12", "6.12.57"));
    EXPECT_FALSE(has("6.12", "6.13.0"));
    EXPECT_TRUE(has("6.6-7.0", "7.0.5"));
    EXPECT_TRUE(has("<=7.0", "7.0.5"));
    EXPECT_FALSE(has(">6.6", "6.6.12"));
    EXPECT_TRUE(has(">6.6", "6.7.0"));
}

TEST(NumberRange, AReleaseBeginsWithItsNumbers) {
    EXPECT_EQ(leading_numbers("6.8.0-45-generic"), (Numbers{6, 8, 0}));
    EXPECT_EQ(leading_numbers("7.1."), (Numbers{7, 1}));
    EXPECT_EQ(leading_numbers("7"), Numbers{7});
    EXPECT_EQ(leading_numbers("next-20260101"), Numbers{});
    EXPECT_EQ(leading_numbers(""), Numbers{});
}

}  // namespace
}  // namespace wq
