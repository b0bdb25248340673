// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers, texts and sets: the small parts of base/ and policy/.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "base/cpu_set.h"
#include "base/hash.h"
#include "base/text.h"
#include "machine/scope.h"
#include "policy/quantity.h"

namespace wq {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// ---- text

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

// ---- number range

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

// ---- quantity

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

// ---- cpu set

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

// ---- sha256

std::string hex(const Digest& digest) {
    std::string out;
    for (const auto byte : digest) out += fmt::format("{:02x}", byte);
    return out;
}

TEST(Sha256, GivesTheExamplesOfFips180) {
    EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, GivesTheHmacsOfRfc4231) {
    EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(
        hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// ---- scope

TEST(ScopeFile, KeepsTheFirstWordAndItsMeaning) {
    EXPECT_EQ(parse_scope_file("default (cache_shard)\n"), (ScopeFile{"default", Scope::cache_shard}));
    EXPECT_EQ(parse_scope_file("smt\n"), (ScopeFile{"smt", Scope::smt}));
    EXPECT_EQ(parse_scope_file("default (cluster)\n"), (ScopeFile{"default", std::nullopt}));
}

TEST(ScopeFile, RefusesGarbage) {
    for (const char* text :
         {"", "\n", "smt smt", "default ()", "default cache", "default (cache", "SMT", "../x"})
        EXPECT_FALSE(parse_scope_file(text)) << text;
}

TEST(Scopes, ListsAreSortedAndStrict) {
    EXPECT_EQ(*parse_scopes("cache,cpu"), (std::vector{Scope::cpu, Scope::cache}));
    for (const char* text : {"", "cpu,", "cpu,cpu", "caches", "default"})
        EXPECT_FALSE(parse_scopes(text)) << text;
}

}  // namespace
}  // namespace wq
