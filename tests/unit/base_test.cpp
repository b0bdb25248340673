// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers, texts and sets: the small parts of base/ and policy/.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "policy/quantity.h"

namespace wq {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The texts of LIST, which have ";" between them.
std::vector<std::string> texts(const std::string& list) {
    std::vector<std::string> out(1);
    for (const char c : list)
        if (c == ';')
            out.emplace_back();
        else
            out.back() += c;
    return out;
}

// PARSE accepts none of LIST.
void expect_none(auto parse, const std::string& list) {
    for (const std::string& text : texts(list)) EXPECT_FALSE(parse(text)) << "'" << text << "'";
}

// ---- text

// Each invalid byte is shown as one '?'.
TEST(InQuotes, LimitsTheLengthBetweenCharacters) {
    EXPECT_EQ(in_quotes("smt"), "\"smt\"");
    EXPECT_EQ(in_quotes(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
    EXPECT_EQ(in_quotes(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
    EXPECT_EQ(in_quotes(std::string(63, 'x') + "\u00e9"), "\"" + std::string(63, 'x') + "...\"");
    EXPECT_EQ(in_quotes(std::string(100, '\xff')), "\"" + std::string(64, '?') + "...\"");
    EXPECT_EQ(in_quotes("ab\xc3" + std::string(100, 'x')), "\"ab?" + std::string(61, 'x') + "...\"");
}

TEST(NumberOf, ReadsTheWholeTextOrNothing) {
    EXPECT_EQ(number_of<unsigned>("0"), 0U);
    EXPECT_EQ(number_of<unsigned>("007"), 7U);
    EXPECT_EQ(number_of<unsigned>("4294967295"), 4294967295U);
    EXPECT_EQ(number_of<std::uint64_t>("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(number_of<int>("-1"), -1);
    EXPECT_EQ(number_of<double>("2.5e-1"), 0.25);
    expect_none(number_of<unsigned>, "; ;1 ; 1;1\n;+1;-1;1x;0x1;1.5;4294967296;99999999999999999999");
    EXPECT_EQ(number_of<unsigned>({}), std::nullopt);
    expect_none(number_of<double>, ";0.5x; 0.5;.");
}

TEST(Percentage, IsAShare) {
    for (const auto& [text, share] : {std::pair{"0%", 0.0}, {"5%", 0.05}, {"2.5%", 0.025}, {"100%", 1.0}}) {
        EXPECT_EQ(parse_percentage(text), share);
    }
    const char* const bad = ";%;5;0.05;-1%;100.1%;nan%;inf%;5%%;5 %; 5%;1e400%;x%";
    expect_none(parse_percentage, bad);
}

// ---- number range

TEST(NumberRange, HasTheNumbersThatItSays) {
    const struct {
        const char* range;
        Numbers inside, outside;  // each number on its own
    } cases[] = {
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
    for (const auto& one : cases) {
        for (unsigned number : one.inside)
            EXPECT_EQ(in_range({number}, one.range, false), true) << one.range << ": " << number;
        for (unsigned number : one.outside)
            EXPECT_EQ(in_range({number}, one.range, false), false) << one.range << ": " << number;
    }
    expect_none([](const std::string& range) { return in_range({}, range, false); },
                "; ;x;>=;=>8;>=x;8-;-8;16-8;8-12-16;1,;,1;8.5;6.6;99999999999;>=8 <64;12x;+1");
    expect_none([](const std::string& range) { return in_range({}, range, true); },
                ";6.;.6;6..6;v6.6;>=6.6-rc1;7.0-6.6;1.2.3.4.5");
}

// In as many numbers as are written.
TEST(NumberRange, ComparesVersionsByNumber) {
    const auto has = [](const std::string& pair) {
        const auto space = pair.find(' ');
        return in_range(leading_numbers(pair.substr(space + 1)), pair.substr(0, space), true).value();
    };
    for (const std::string& pair :
         texts(">=6.6 6.6.0;>=6.6 6.12.57+deb13-amd64;>=6.6 7.0-rc3;6.6-7.0 6.18.23;<6.12.82 6.12.9;6.12.0 "
               "6.12;6.12 6.12.57;6.6-7.0 7.0.5;<=7.0 7.0.5;>6.6 6.7.0"))
        EXPECT_TRUE(has(pair)) << pair;
    for (const std::string& pair :
         texts(">=6.6 6.5.13;>=6.6 5.19.0;<6.12.82 6.12.82;6.12 6.13.0;>6.6 6.6.12"))
        EXPECT_FALSE(has(pair)) << pair;
    EXPECT_EQ(leading_numbers("6.8.0-45-generic"), (Numbers{6, 8, 0}));
    EXPECT_EQ(leading_numbers("7.1."), (Numbers{7, 1}));
    EXPECT_EQ(leading_numbers("7"), Numbers{7});
    for (const char* none : {"next-20260101", ""}) EXPECT_EQ(leading_numbers(none), Numbers{});
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
                                                    {"1h30m", 5'400'000},
                                                    {"30min 1h 30min", 7'200'000},
                                                    {"1 h  30 min 1s1ms", 5'401'001},
                                                    {"3650d", 315'360'000'000}};
    for (const auto& [text, time] : cases) EXPECT_EQ(parse_duration(text).value().count(), time) << text;
    // Written as it would be read.
    const std::map<long long, std::string> written = {{0, "0s"},
                                                      {1, "1ms"},
                                                      {1'500, "1s 500ms"},
                                                      {60'000, "1min"},
                                                      {5'400'000, "1h 30min"},
                                                      {604'800'000, "7d"},
                                                      {90'061'001, "1d 1h 1min 1s 1ms"}};
    for (const auto& [time, text] : written) {
        EXPECT_EQ(text_of(milliseconds(time)), text);
        EXPECT_EQ(parse_duration(text), milliseconds(time));
    }
}

// Of more than ten years it is refused, and does not overflow.
TEST(Duration, NothingElseIs) {
    for (const std::string& bad :
         texts("3651d;3650d 1ms;3649d 25h;315360000001ms;9223372036854775807ms;9223372036854775808ms;"
               "18446744073709551617s;99999999999999999999999999d; ;10;0;s;10 ; 10s;10s ;10s "
               "5;-1s;+1s;1.5h;1,5h;1e3s;10S;10sec;1w;1M;1y;10 min s;1h, "
               "30min;1h\t30min;10s\n;0x10s;1 h 30;ms10;10\xc2\xb5s"))
        EXPECT_THAT(parse_duration(bad).error().text, HasSubstr("its unit (ms, s, m or min, h, d)")) << bad;
    EXPECT_FALSE(parse_duration(std::string("10s\0", 4)));
}

TEST(HoursOfTheDay, AreReadInMinutes) {
    EXPECT_EQ(parse_hours("00:00-24:00"), Hours{});
    EXPECT_EQ(parse_hours("22:00-06:00"), (Hours{22 * 60, 6 * 60}));
    EXPECT_EQ(parse_hours("08:15-17:45"), (Hours{8 * 60 + 15, 17 * 60 + 45}));
    EXPECT_EQ(parse_hours("22:00-00:00"), (Hours{22 * 60, 0}));
    EXPECT_EQ(parse_hours("23:59-24:00"), (Hours{23 * 60 + 59, 24 * 60}));
    expect_none(parse_hours,
                ";-;22:00;22:00-;22-06;22:00 - 06:00;22:00-6:00;22:00-06:00 ;24:00-06:00;22:00-24:01;"
                "22:60-06:00;25:00-06:00;22:00-06:-1;+2:00-06:00;ab:cd-ef:gh;22.00-06.00;22:00/06:00;"
                "22:00-06:000;-1:00-06:00;00:00-00:00;06:00-06:00");
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
    for (const char* good : {"2027-01-31", "2028-02-29", "2000-12-01"}) EXPECT_TRUE(is_date(good));
    expect_none(is_date,
                ";2027-1-31;2027-02-29;2027-13-01;2027-00-10;1999-12-31;2027-01-31 ;20270131;31-01-2027;"
                "2027-01-0x;-027-01-31;2027--1-31");
}

TEST(JudgeOptions, AreInTheirRanges) {
    EXPECT_EQ(*parse_alpha("0.5"), 0.5);
    EXPECT_EQ(*parse_alpha("1e-3"), 0.001);
    expect_none(parse_alpha, ";0;-0;0.51;-0.1;nan;inf;0.05x; 0.05;5%;1e-400");
    const auto pairs = parse_count<unsigned, kMaxPairs>;
    EXPECT_EQ(*pairs("10000"), 10000U);
    expect_none(pairs, ";0;10001;-1;1.5;4294967297;99999999999");
    EXPECT_EQ(pairs("0").error().text, "must be 1 to 10000");
}

// ---- cpu set

TEST(CpuSetList, ReadsAndPrintsWhatTheKernelPrints) {
    EXPECT_EQ(CpuSet::parse_list("0-3,8\n"), (CpuSet{0, 1, 2, 3, 8}));
    EXPECT_EQ(CpuSet::parse_list("\n"), CpuSet{});
    EXPECT_EQ(CpuSet::parse_list("70")->first(), 70U);
    EXPECT_EQ(CpuSet::parse_list("1,0,2,88-95,63,64")->list(), "0-2,63-64,88-95");
    EXPECT_EQ(CpuSet{}.list(), "");
    expect_none(CpuSet::parse_list,
                "a;1-;-1;3-1;1,;,;1 2;0-2147483648;65536;0-1:1/1;99999999999999999999;0x1;1,,2");
    EXPECT_FALSE(CpuSet::parse_list(std::string(1 << 20, '7')));
}

TEST(CpuSetMask, ReadsAndPrintsWhatTheKernelPrints) {
    EXPECT_EQ(CpuSet::parse_mask("ff\n"), CpuSet::range(0, 7));
    EXPECT_EQ(CpuSet::parse_mask("3,00000000,80000000"), (CpuSet{31, 64, 65}));
    EXPECT_EQ(CpuSet::parse_mask("0"), CpuSet{});
    expect_none(CpuSet::parse_mask, ";\n;xyz;100000000;1,,1;1,;-1");
    EXPECT_EQ(CpuSet{}.mask(), "0");
    EXPECT_EQ((CpuSet{0, 31}).mask(), "80000001");
    EXPECT_EQ((CpuSet{32}).mask(), "1,00000000");
    EXPECT_EQ((CpuSet{1, 63, 128}).mask(), "1,00000000,00000000,80000000,00000002");
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
        ASSERT_EQ(CpuSet::parse_mask(x.mask()), x);
        if (a.empty()) continue;
        ASSERT_EQ(x.first(), *a.begin());
        ASSERT_TRUE(x.has(*a.rbegin()));
        ASSERT_FALSE(x.has(*a.rbegin() + 1));
        CpuSet without = x;
        without.remove(*a.begin());
        ASSERT_EQ(without | CpuSet{*a.begin()}, x);
        ASSERT_EQ(without.count() + 1, x.count());
        CpuSet shorter = x;
        shorter.remove(*a.rbegin());
        ASSERT_EQ(shorter, from_plain({a.begin(), std::prev(a.end())}));
    }
}

// ---- scope

TEST(ScopeFile, KeepsTheFirstWordAndItsMeaning) {
    EXPECT_EQ(parse_scope_file("default (cache_shard)\n"), (ScopeFile{"default", Scope::cache_shard}));
    EXPECT_EQ(parse_scope_file("smt\n"), (ScopeFile{"smt", Scope::smt}));
    EXPECT_EQ(parse_scope_file("default (cluster)\n"), (ScopeFile{"default", std::nullopt}));
    expect_none(parse_scope_file, ";\n;smt smt;default ();default cache;default (cache;SMT;../x");
    EXPECT_EQ(*parse_scopes("cache,cpu"), (std::vector{Scope::cpu, Scope::cache})) << "sorted";
    expect_none(parse_scopes, ";cpu,;cpu,cpu;caches;default");
}

}  // namespace
}  // namespace wq
