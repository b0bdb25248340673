// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace wq {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(Duration, IsTheSumOfWholeNumbersWithUnits) {
    const std::map<std::string, long long> cases = {{"0ms", 0},
                                                    {"500ms", 500},
                                                    {"10s", 10'000},
                                                    {"10 s", 10'000},
                                                    {"90min", 5'400'000},
                                                    {"5m", 300'000},
                                                    {"1h", 3'600'000},
                                                    {"7d", 604'800'000},
                                                    {"007s", 7'000},
                                                    {"1h 30min", 5'400'000},
                                                    {"1h30m", 5'400'000},
                                                    {"1 h  30 min 1s1ms", 5'401'001},
                                                    {"30min 1h 30min", 7'200'000},
                                                    {"3650d", 315'360'000'000}};
    for (const auto& [text, time] : cases) {
        const auto parsed = parse_duration(text);
        ASSERT_TRUE(parsed) << text << ": " << parsed.error().text;
        EXPECT_EQ(parsed->count(), time) << text;
    }
}

TEST(Duration, NothingElseIs) {
    for (const char* bad :
         {"",    " ",        "10",        "0",         "s",     "10 ",   " 10s",   "10s ", "10s 5",
          "-1s", "+1s",      "1.5h",      "1,5h",      "1e3s",  "10S",   "10sec",  "1w",   "1M",
          "1y",  "10 min s", "1h, 30min", "1h\t30min", "10s\n", "0x10s", "1 h 30", "ms10", "10\xc2\xb5s"}) {
        const auto parsed = parse_duration(bad);
        ASSERT_FALSE(parsed) << bad;
        EXPECT_THAT(parsed.error().text, HasSubstr("its unit (ms, s, m or min, h, d)")) << bad;
    }
    EXPECT_FALSE(parse_duration(std::string("10s\0", 4)));
}

TEST(Duration, OfMoreThanTenYearsIsRefusedAndDoesNotOverflow) {
    for (const char* bad :
         {"3651d", "3650d 1ms", "3649d 25h", "315360000001ms", "9223372036854775807ms",
          "9223372036854775808ms", "18446744073709551617s", "99999999999999999999999999d"}) {
        const auto parsed = parse_duration(bad);
        ASSERT_FALSE(parsed) << bad;
        EXPECT_EQ(parsed.error().text, "must be at most 3650d") << bad;
    }
}

TEST(Duration, IsWrittenAsItWouldBeRead) {
    const std::map<long long, std::string> cases = {{0, "0s"},
                                                    {1, "1ms"},
                                                    {1'500, "1s 500ms"},
                                                    {60'000, "1min"},
                                                    {5'400'000, "1h 30min"},
                                                    {604'800'000, "7d"},
                                                    {90'061'001, "1d 1h 1min 1s 1ms"}};
    for (const auto& [time, text] : cases) {
        EXPECT_EQ(text_of(milliseconds(time)), text);
        EXPECT_EQ(parse_duration(text), milliseconds(time));
    }
}

TEST(Percentage, IsAShare) {
    EXPECT_EQ(parse_percentage("0%"), 0);
    EXPECT_EQ(parse_percentage("5%"), 0.05);
    EXPECT_EQ(parse_percentage("2.5%"), 0.025);
    EXPECT_EQ(parse_percentage("100%"), 1);
    for (const char* bad :
         {"", "%", "5", "0.05", "-1%", "100.1%", "nan%", "inf%", "5%%", "5 %", " 5%", "1e400%", "x%"})
        EXPECT_FALSE(parse_percentage(bad)) << bad;
}

TEST(HoursOfTheDay, AreReadInMinutes) {
    EXPECT_EQ(parse_hours("00:00-24:00"), Hours{});
    EXPECT_EQ(parse_hours("22:00-06:00"), (Hours{22 * 60, 6 * 60}));
    EXPECT_EQ(parse_hours("08:15-17:45"), (Hours{8 * 60 + 15, 17 * 60 + 45}));
    EXPECT_EQ(parse_hours("22:00-00:00"), (Hours{22 * 60, 0}));
    EXPECT_EQ(parse_hours("23:59-24:00"), (Hours{23 * 60 + 59, 24 * 60}));
}

TEST(HoursOfTheDay, NothingElseIs) {
    for (const char* bad :
         {"", "-", "22:00", "22:00-", "22-06", "22:00 - 06:00", "22:00-6:00", "22:00-06:00 ", "24:00-06:00",
          "22:00-24:01", "22:60-06:00", "25:00-06:00", "22:00-06:-1", "+2:00-06:00", "ab:cd-ef:gh",
          "22.00-06.00", "22:00/06:00", "22:00-06:000", "-1:00-06:00"})
        EXPECT_FALSE(parse_hours(bad)) << bad;
    for (const char* empty : {"00:00-00:00", "06:00-06:00"})
        EXPECT_THAT(parse_hours(empty).error().text, HasSubstr("all day is \"00:00-24:00\"")) << empty;
}

TEST(HoursOfTheDay, MayGoOverMidnight) {
    const Hours night = parse_hours("22:00-06:00").value();
    for (unsigned minute : {22U * 60, 23U * 60 + 59, 0U, 5U * 60 + 59})
        EXPECT_TRUE(night.contains(minute)) << minute;
    for (unsigned minute : {6U * 60, 12U * 60, 21U * 60 + 59}) EXPECT_FALSE(night.contains(minute)) << minute;
    const Hours late = parse_hours("22:00-00:00").value();
    EXPECT_TRUE(late.contains(23 * 60 + 59));
    EXPECT_FALSE(late.contains(0));
    for (unsigned minute : {0U, 24U * 60 - 1}) EXPECT_TRUE(Hours{}.contains(minute)) << minute;
}

TEST(ParseDate, TakesDaysOfTheCalendarOnly) {
    for (const char* good : {"2027-01-31", "2028-02-29", "2000-12-01"}) {
        ASSERT_TRUE(parse_date(good)) << good;
        EXPECT_EQ(*parse_date(good), good);
    }
    for (const char* bad :
         {"", "2027-1-31", "2027-02-29", "2027-13-01", "2027-00-10", "1999-12-31", "2027-01-31 ", "20270131",
          "31-01-2027", "2027-01-0x", "-027-01-31", "2027--1-31"})
        EXPECT_FALSE(parse_date(bad)) << bad;
}

TEST(NumberRange, HasTheNumbersThatItSays) {
    struct Case {
        const char* range;
        Numbers inside, outside;  // each number on its own
    };
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

TEST(NumberRange, AVersionIsComparedInAsManyNumbersAsAreWritten) {
    struct Versions {
        const char* range;
        std::vector<const char*> inside, outside;
    };
    for (const auto& [range, inside, outside] :
         {Versions{">=6.6", {"6.6.0", "6.12.57+deb13-amd64", "7.0-rc3"}, {"6.5.13", "5.19.0"}},
          {"6.6-7.0", {"6.18.23", "7.0.5"}, {"7.1"}},
          {"<6.12.82", {"6.12.9"}, {"6.12.82"}},
          {"6.12", {"6.12", "6.12.57"}, {"6.13.0"}},
          {"6.12.0", {"6.12"}, {"6.12.1"}},
          {"<=7.0", {"7.0.5"}, {"7.1.0"}},
          {">6.6", {"6.7.0"}, {"6.6.12"}}}) {
        const NumberRange read = NumberRange::of_versions(range).value();
        for (const char* release : inside)
            EXPECT_TRUE(read.has(leading_numbers(release))) << range << release;
        for (const char* release : outside)
            EXPECT_FALSE(read.has(leading_numbers(release))) << range << release;
    }
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
