// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fleet_lines.h"

namespace wq {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kReadAt = test::kFleetTime + 1000;

FleetLine a_line() {
    Random random(1);
    FleetLine line = test::host_line(0xabc, test::fleet_key(), test::measured(20, -0.02, random));
    line.own.after = {9, -0.2, 0.03};
    return line;
}

FleetLine a_merged_line() {
    FleetLine line = a_line();
    line.pooled = pooled(line.own, 0);
    line.pooled.add(line.pooled);
    line.host.clear();
    line.shards.add({2, 4});
    line.shards.add({3, 4});
    return line;
}

std::string refusal(const std::string& text) {
    return FleetLineReader(kReadAt).read(text);
}

TEST(FleetLine, ComesBackFromItsTextToTheLastBit) {
    FleetLineReader reader(kReadAt);
    for (const FleetLine& line : {a_line(), a_merged_line(), a_line()}) {
        ASSERT_EQ(reader.read(text_of(line)), "");
        EXPECT_EQ(reader.line().key, line.key);
        EXPECT_EQ(reader.line().host, line.host);
        EXPECT_EQ(reader.line().at, line.at);
        EXPECT_EQ(reader.line().own, line.is_merged() ? HostEvidence() : line.own);
        EXPECT_EQ(reader.line().pooled, line.pooled);
        EXPECT_EQ(reader.line().shards, line.shards);
        EXPECT_EQ(reader.line().is_merged(), line.is_merged());
    }
}

TEST(FleetLine, HasTheKeysOfTheContract) {
    const auto keys = [](const FleetLine& line) {
        std::string out;
        const Json whole = Json::parse(text_of(line));
        for (const auto& [key, value] : whole.items()) out += key + " ";
        return out;
    };
    EXPECT_EQ(keys(a_line()),
              "v host at machine kernel topology scheduler class reference reference_origin candidate "
              "partitions strict counter guard tolerance window n pairs better worse sum squares "
              "after ");
    EXPECT_EQ(
        keys(a_merged_line()),
        "v at hosts machine kernel topology scheduler class reference reference_origin candidate "
        "partitions strict counter guard tolerance window n pairs better worse sum squares after "
        "hosts_better hosts_worse hosts_below hosts_above hosts_after top_better top_worse spread shards ");
    EXPECT_EQ(Json::parse(text_of(a_line()))["after"].dump(), R"({"pairs":9,"sum":-0.2,"squares":0.03})");
    EXPECT_EQ(Json::parse(text_of(a_line()))["machine"].dump(),
              R"({"arch":"x86_64","vendor":"AuthenticAMD","model":"AMD [EPYC] 9654 96-Core Processor",)"
              R"("packages":2,"cores":192,"llc_cores":8})");
    EXPECT_GE(text_of(FleetLine{{{}, {}, 1, {}}, "a", {}}).size(), kLeastHostLine);
}

TEST(FleetLine, ReadsOtherOrdersBlanksEscapesAndUnknownKeys) {
    Json reversed = Json::object();
    const Json line = Json::parse(text_of(a_line()));
    for (auto it = line.rbegin(); it != line.rend(); ++it) reversed[it.key()] = it.value();
    reversed["later"] = {{"a", {1, "]", true, nullptr}}};
    FleetLineReader reader(kReadAt);
    std::string text = reversed.dump(1);
    std::ranges::replace(text, '\n', ' ');
    ASSERT_EQ(reader.read(text + "  \r"), "");
    EXPECT_EQ(reader.line().own, a_line().own);
    text.replace(text.find("kcryptd"), 1, R"(\u00e9\ud83d\ude00\"\\\/)");
    ASSERT_EQ(reader.read(text), "");
    EXPECT_EQ(reader.line().key.kind, "\u00e9\U0001F600\"\\/cryptd-#:#-#");
}

TEST(FleetLine, WhatIsNotKnownOfAMachineIsNull) {
    Json line = Json::parse(text_of(a_line()));
    line["machine"] = {{"arch", nullptr}, {"cores", nullptr}};
    FleetLineReader reader(kReadAt);
    ASSERT_EQ(reader.read(line.dump()), "");
    EXPECT_EQ(reader.line().key.machine, FleetMachine{});
}

std::string changed(const std::string& key, const Json& value, const FleetLine& line = a_line()) {
    Json j = Json::parse(text_of(line));
    j[key] = value;
    return refusal(j.dump());
}

TEST(FleetLine, EachMistakeIsNamed) {
    const auto text = [](std::size_t size) { return std::string(size, 'a'); };
    const struct {
        const char* key;
        std::vector<Json> values;
        const char* says;
    } rows[] = {
        {"v", {2}, "version 2"},
        {"v", {1.5}, "\"v\" is not valid"},
        {"host", {"web-1.example.org", "", "0ABC"}, "\"host\""},
        {"at", {0}, "\"at\""},
        {"at", {kReadAt + kClockSlack + 1}, "future"},
        {"at", {kReadAt + kClockSlack}, ""},
        {"machine", {1}, "\"machine\""},
        {"class", {"a\nb", "\u0085", "", text(65)}, "\"class\""},
        {"class", {text(64)}, ""},
        {"window", {text(256)}, "\"window\""},
        {"window", {text(255)}, ""},
        {"machine", {Json{{"arch", text(65)}}}, "\"arch\""},
        {"machine", {Json{{"vendor", text(65)}}}, "\"vendor\""},
        {"machine", {Json{{"model", text(129)}}}, "\"model\""},
        {"machine", {Json{{"cores", 1ULL << 32U}}}, "\"cores\""},
        {"reference_origin", {"mine"}, "\"reference_origin\""},
        {"partitions", {Json::array({1})}, "\"partitions\""},
        {"strict", {1}, "\"strict\""},
        {"tolerance", {1.5}, "\"tolerance\""},
        {"pairs", {-1, 1.5, "1"}, "\"pairs\""},
        {"better", {Json::array({0, 0, 0, 0, 0, 0}), Json::array({0, 0, 0, 0, 0, 0, 0, 0})}, "\"better\""},
        {"worse", {Json::array({0, 0, nullptr, 0, 0, 0, 0})}, "\"worse\""},  // how JSON writes NaN
        {"worse", {Json::array({0, 0, 2e6, 0, 0, 0, 0})}, "\"worse\""},
        {"after", {Json{{"pairs", 1}, {"sum", 0}}}, "there is no \"squares\""},
        {"squares", {-1}, "\"squares\""},
    };
    for (const auto& [key, values, says] : rows)
        for (const Json& value : values) {
            SCOPED_TRACE(value.dump());
            const std::string why = changed(key, value);
            EXPECT_EQ(why.empty(), *says == '\0') << why;
            EXPECT_THAT(why, HasSubstr(says));
        }
    for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"hosts", 0},
                                                                              {"hosts", 1'000'000'001},
                                                                              {"shards", Json::array()},
                                                                              {"shards", {"1/2", "3/4"}},
                                                                              {"shards", {"0/2"}},
                                                                              {"shards", {1}}})
        EXPECT_THAT(changed(key, value, a_merged_line()), HasSubstr(std::string("\"") + key + "\" is not"));
}

std::string refused_host(const std::function<void(HostEvidence&)>& change) {
    FleetLine line = a_line();
    change(line.own);
    return refusal(text_of(line));
}

TEST(FleetLine, AHostSaysOnlyWhatItsPairsCanGive) {
    for (const auto change : std::initializer_list<void (*)(HostEvidence&)>{
             [](auto& own) { own.pairs = 1ULL << 32U; }, [](auto& own) { own.alarms = 1ULL << 32U; },
             [](auto& own) { own.pairs = 0; }, [](auto& own) { own.sum = 401, own.squares = 1e5; },
             [](auto& own) { own.sum = 10, own.squares = 4.99; }, [](auto& own) { own.squares = 8001; },
             [](auto& own) { own.better[6] = 1.01e5; }, [](auto& own) { own.worse[0] = -1.01e5; },
             [](auto& own) { own.after.pairs = 21; }, [](auto& own) { own.after.pairs = 0; },
             [](auto& own) { own.after.sum = 1; }, [](auto& own) { own.after.squares = 3601; }})
        EXPECT_NE(refused_host(change), "");
    EXPECT_EQ(refused_host([](auto& own) { own.sum = 400, own.squares = 8000; }), "");
    EXPECT_EQ(refused_host([](auto& own) { own = {}; }), "");
}

// The sum over any number of such hosts can be read again.
TEST(FleetLine, TheLoudestHostsMakeAMergedLine) {
    for (const double side : {1.0, -1.0}) {
        HostEvidence own;
        own.pairs = own.alarms = UINT32_MAX;
        own.better.fill(side * kMostLog);
        own.worse.fill(-side * kMostLog);
        own.sum = -side * 20 * UINT32_MAX;
        own.squares = 400.0 * UINT32_MAX;
        EXPECT_EQ(refused_host([&](auto& out) { out = own; }), "");
        FleetLine line = a_merged_line();
        line.pooled = {};
        for (int host = 0; host < 10'000; host++) line.pooled.add(pooled(own, 0));
        EXPECT_EQ(refusal(text_of(line)), "");
    }
}

TEST(FleetLine, AMergedLineSaysOnlyWhatItsHostsCanGive) {
    const auto bounds = HasSubstr("out of bounds");
    const FleetLine line = a_merged_line();
    const auto all = [](double value) { return std::vector<double>(7, value); };
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, double>>{{"better", 1e12},
                                                     {"worse", -1e12},
                                                     {"better", -4.61},  // 2 ln 0.1 is -4.605
                                                     {"worse", 13.7}})   // 2 ln 900.1 is 13.6
        EXPECT_THAT(changed(key, all(value), line), bounds) << key << value;
    EXPECT_EQ(changed("better", all(-4.6), line), "");
    for (const char* hosts : {"hosts_better", "hosts_worse", "hosts_below", "hosts_above", "hosts_after"})
        EXPECT_NE(changed(hosts, 3, line), "") << hosts;
    for (const double top : {-0.1, 6.9}) EXPECT_NE(changed("top_better", all(top), line), "");
    EXPECT_THAT(changed("sum", 1e9, line), bounds);
    for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"hosts", 3},
                                                                              {"weight", -1},
                                                                              {"weight_squares", -1},
                                                                              {"squares", -1},
                                                                              {"least", {0, -1}},
                                                                              {"most", {0, -1}}}) {
        Json spread = Json::parse(text_of(line))["spread"];
        spread[key] = value;
        EXPECT_NE(changed("spread", spread, line), "") << key;
    }
}

// Keys that are not in the contract, and that a program which only adds does not produce.
const std::set<std::string> kOptionalOfMerged = {"hosts_better", "hosts_worse", "hosts_below", "hosts_above",
                                                 "hosts_after",  "top_better",  "top_worse",   "spread"};

TEST(FleetLine, EachMissingKeyIsNamedAndWithoutGuardItIsOfAGuard) {
    FleetLineReader reader(kReadAt);
    for (const FleetLine& line : {a_line(), a_merged_line()}) {
        const Json whole = Json::parse(text_of(line));
        for (const auto& [key, value] : whole.items()) {
            Json part = whole;
            part.erase(key);
            const bool optional = key == "guard" || key == "after" || kOptionalOfMerged.contains(key);
            EXPECT_EQ(reader.read(part.dump()).empty(), optional) << key;
            EXPECT_TRUE(!optional || reader.line().key.guard == (key == "guard"));
            EXPECT_TRUE(!optional || reader.line().lacks_keys == (key != "after"));
            if (!kOptionalOfMerged.contains(key)) continue;
            Pooled expected = line.pooled;
            expected.forget_hosts();
            EXPECT_EQ(reader.line().pooled, expected) << "nothing is left of " << key;
            ASSERT_EQ(reader.read(whole.dump()), "");
            EXPECT_TRUE(reader.line().pooled.by_host) << "nor of an earlier line";
        }
    }
}

// A line that is cut off or overwritten is either read or refused, and the program does not crash.
TEST(FleetLine, NoPrefixIsALine) {
    for (const FleetLine& line : {a_line(), a_merged_line()}) {
        const std::string text = text_of(line);
        for (std::size_t n = 0; n < text.size(); n++)
            EXPECT_THAT(refusal(text.substr(0, n)), HasSubstr("cut off")) << n;
        Random random(3);
        for (int i = 0; i < 2000; i++) {
            std::string bad = text;
            bad[random.bits() % bad.size()] = static_cast<char>(random.bits());
            (void)refusal(bad);
        }
    }
    EXPECT_NE(refusal(std::string(200'000, '[')), "");
    EXPECT_NE(refusal(R"({"later":)" + std::string(60'000, '[')), "");
    EXPECT_THAT(refusal(text_of(a_line()) + std::string(kMostLine, ' ')), HasSubstr("longer"));
}

TEST(Shards, AllOfThemAreTheWhole) {
    Shards shards;
    for (const Shard one : {Shard{3, 3}, Shard{1, 3}, Shard{2, 3}}) {
        EXPECT_FALSE(shards.overlaps(one));
        shards.add(one);
    }
    EXPECT_EQ(shards.all(), std::vector{Shard{}});
    EXPECT_TRUE(shards.overlaps({2, 7}));
    EXPECT_TRUE((Shard{1, 2}.overlaps({1, 3}))) << "it is not worked out";
    EXPECT_EQ(shard_named("2/3"), (Shard{2, 3}));
    for (const char* wrong : {"", "1", "1/", "/1", "0/1", "2/1", "1/65537", "-1/2", "1/2x", " 1/2", "1.0/2"})
        EXPECT_FALSE(shard_named(wrong)) << wrong;
}

}  // namespace
}  // namespace wq
