// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests of base/text.h: reading and quoting. printable() is tested in terminal_test.cpp.
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wq {
namespace {

TEST(InQuotes, LimitsTheLengthBetweenCharacters) {
    EXPECT_EQ(in_quotes("smt"), "\"smt\"");
    EXPECT_EQ(in_quotes(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
    EXPECT_EQ(in_quotes(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
    EXPECT_EQ(in_quotes(std::string(63, 'x') + "\u00e9"), "\"" + std::string(63, 'x') + "...\"");
}

// Each invalid byte is shown as one '?'.
TEST(InQuotes, EndsForInvalidUtf8) {
    EXPECT_EQ(in_quotes(std::string(100, '\xff')), "\"" + std::string(64, '?') + "...\"");
    EXPECT_EQ(in_quotes("ab\xc3" + std::string(100, 'x')), "\"ab?" + std::string(61, 'x') + "...\"");
}

TEST(NumberOf, ReadsTheWholeText) {
    EXPECT_EQ(number_of<unsigned>("0"), 0U);
    EXPECT_EQ(number_of<unsigned>("007"), 7U);
    EXPECT_EQ(number_of<unsigned>("4294967295"), 4294967295U);
    EXPECT_EQ(number_of<std::uint64_t>("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(number_of<int>("-1"), -1);
    EXPECT_EQ(number_of<double>("2.5e-1"), 0.25);
}

TEST(NumberOf, IsNothingForAnyOtherText) {
    for (const char* bad :
         {"", " ", "1 ", " 1", "1\n", "+1", "-1", "1x", "0x1", "1.5", "4294967296", "99999999999999999999"})
        EXPECT_EQ(number_of<unsigned>(bad), std::nullopt) << bad;
    EXPECT_EQ(number_of<unsigned>({}), std::nullopt);
    for (const char* bad : {"", "0.5x", " 0.5", "."}) EXPECT_EQ(number_of<double>(bad), std::nullopt) << bad;
}

TEST(PercentageOf, IsAShare) {
    EXPECT_EQ(percentage_of("2.5%"), 0.025);
    EXPECT_EQ(percentage_of("100%"), 1);
    for (const char* bad : {"", "%", "5", "-1%", "100.1%", "nan%", "5%%", "5 %"})
        EXPECT_EQ(percentage_of(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace wq
