// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ctl/fleet/fleet.h"
#include "fleet_lines.h"

namespace wq {
namespace {

using test::fleet_key;
using test::host_line;
using test::kFleetTime;
using test::measured;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Lines = std::vector<std::string>;

struct Merged {
    Lines lines;
    Lines refused;
    Lines notes;
    unsigned rounds = 0;
    std::uint64_t covered = 0;
};

Merged merge(const Lines& lines, Shard shard = {}, std::size_t most_rows = 1U << 20U) {
    FleetMerge::Options options{shard, kFleetTime + 1'000'000, 0, most_rows};
    for (const std::string& line : lines) options.bytes += line.size();
    FleetMerge merge(options);
    Merged out;
    do {
        out.rounds++;
        for (const std::string& line : lines) {
            if (std::string why = merge.take(line); !why.empty()) out.refused.push_back(why);
            if (!merge.note().empty()) out.notes.push_back(merge.note());
        }
    } while (merge.again());
    out.covered = merge.covered();
    for (const FleetEntry& entry : merge.entries()) out.lines.push_back(text_of(FleetLine{entry, "", {}}));
    return out;
}

std::vector<FleetLine> read(const Lines& lines) {
    std::vector<FleetLine> out;
    FleetLineReader reader(kFleetTime + 1'000'000);
    for (const std::string& line : lines) {
        EXPECT_EQ(reader.read(line), "");
        out.push_back(reader.line());
    }
    return out;
}

// Equal except for rounding of sums.
void expect_same(const Lines& left, const Lines& right) {
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); i++) {
        const auto a = nlohmann::json::parse(left[i]).flatten(),
                   b = nlohmann::json::parse(right[i]).flatten();
        ASSERT_EQ(a.size(), b.size());
        for (const auto& [path, value] : a.items()) {
            const auto& other = b.at(path);
            if (value.is_number_float() && other.is_number())
                EXPECT_NEAR(value.get<double>(), other.get<double>(),
                            1e-9 * std::max(1.0, std::abs(value.get<double>())))
                    << path;
            else
                EXPECT_EQ(value, other) << path;
        }
    }
}

// The lines of HOSTS hosts, each with some of five classes.
Lines fleet(unsigned hosts, std::uint64_t seed, std::int64_t at = kFleetTime) {
    Random random(seed);
    Lines out;
    for (unsigned host = 0; host < hosts; host++)
        for (unsigned kind = 0; kind < 5; kind++) {
            if (random.uniform() < 0.3) continue;
            FleetKey key = fleet_key("class" + std::to_string(kind));
            key.machine.cores = 64 + host % 3;
            HostEvidence own = measured(16, -0.01, random);
            if (random.coin()) own.after = {1 + random.bits() % 16, -0.01 * random.uniform(), 0.01};
            out.push_back(text_of(host_line(host, key, own, at + kind)));
        }
    return out;
}

void shuffle(Lines& lines, Random& random) {
    for (std::size_t i = lines.size(); i > 1; i--) std::swap(lines[i - 1], lines[random.bits() % i]);
}

Lines joined(const std::vector<Lines>& all) {
    Lines out;
    for (const Lines& lines : all) out.insert(out.end(), lines.begin(), lines.end());
    return out;
}

TEST(FleetMerge, AddsTheSharesOfHosts) {
    Random random(1);
    const HostEvidence a = measured(16, -0.01, random);
    HostEvidence b = measured(20, 0.5, random);
    b.after = {5, 2.4, 1.3};
    const auto lines = read(merge({text_of(host_line(1, fleet_key(), a, kFleetTime)),
                                   text_of(host_line(2, fleet_key(), b, kFleetTime + 5))})
                                .lines);
    ASSERT_THAT(lines, SizeIs(1));
    const Pooled& p = lines[0].pooled;
    EXPECT_EQ(p.hosts, 2U);
    EXPECT_EQ(p.pairs, 36U);
    EXPECT_EQ(lines[0].at, kFleetTime + 5);
    EXPECT_DOUBLE_EQ(p.sum, a.sum + b.sum);
    EXPECT_DOUBLE_EQ(p.squares, a.squares + b.squares);
    for (std::size_t i = 0; i < kStakes.size(); i++) {
        const auto share = [](double log) { return std::log(0.1 + 0.9 * std::min(std::exp(log), 1000.0)); };
        EXPECT_NEAR(p.better.sums[i], share(a.better[i]) + share(b.better[i]), 1e-12);
        EXPECT_NEAR(p.worse.sums[i], share(a.worse[i]) + share(b.worse[i]), 1e-12);
    }
    EXPECT_EQ(p.worse.hosts, 1U);
    EXPECT_EQ(p.hosts_after, 1U);
    EXPECT_EQ(p.after, b.after);
    EXPECT_THAT(lines[0].shards.all(), ElementsAre(Shard{}));
}

// The newest line of a host and entry counts, once, in whatever order lines come.
TEST(FleetMerge, OlderAndRepeatedLinesDoNotCountAndTheOrderDoesNotMatter) {
    Random random(2);
    const Lines newer = fleet(60, 5, kFleetTime + 10'000);
    Lines lines = joined({fleet(60, 5), newer, newer, fleet(90, 6, kFleetTime - 1)});
    const Lines once = merge(lines).lines;
    expect_same(merge(joined({newer, newer})).lines, merge(newer).lines);
    expect_same(merge(joined({fleet(60, 5), newer})).lines, merge(newer).lines);
    for (int i = 0; i < 20; i++) {
        shuffle(lines, random);
        const Merged again = merge(lines);
        EXPECT_EQ(again.rounds, 1U);
        EXPECT_THAT(again.refused, IsEmpty());
        expect_same(again.lines, once);
    }
    // An older line for another entry of the same host still counts.
    const Lines apart = {text_of(host_line(1, fleet_key("a"), measured(16, 0, random), kFleetTime)),
                         text_of(host_line(1, fleet_key("b"), measured(16, 0, random), kFleetTime + 1))};
    EXPECT_THAT(merge(apart).lines, SizeIs(2));
}

// For any division into shards, and for any order of merging them.
TEST(FleetMerge, ShardsInAnyGroupingMakeTheWhole) {
    const Lines lines = fleet(200, 9);
    const Lines whole = merge(lines).lines;
    for (std::uint32_t n : {2U, 3U, 7U}) {
        std::vector<Lines> shards;
        for (std::uint32_t i = 1; i <= n; i++) shards.push_back(merge(lines, {i, n}).lines);
        expect_same(merge(joined(shards)).lines, whole);
        Random random(n);
        while (shards.size() > 1) {
            std::swap(shards[random.bits() % shards.size()], shards.back());
            const Lines last = shards.back();
            shards.pop_back();
            Lines& other = shards[random.bits() % shards.size()];
            const Merged pair = merge(joined({other, last}));
            EXPECT_THAT(pair.refused, IsEmpty());
            other = pair.lines;
        }
        expect_same(shards[0], whole);
    }
}

TEST(FleetMerge, OverlappingShardsAreRefused) {
    const Lines lines = fleet(50, 10);
    const Lines half = merge(lines, {1, 2}).lines;
    const Merged twice = merge(joined({half, half}));
    EXPECT_THAT(twice.refused, SizeIs(half.size()));
    EXPECT_THAT(twice.refused.front(), HasSubstr("its shard 1/2 overlaps"));
    expect_same(twice.lines, half);
    EXPECT_THAT(merge(joined({half, merge(lines, {3, 4}).lines})).refused, testing::Not(IsEmpty()));
    EXPECT_THAT(merge(half, {1, 2}).refused.front(), HasSubstr("cannot be divided"));
}

TEST(FleetMerge, AHostsLineUnderAMergedLinesShardIsRefused) {
    const Lines lines = fleet(50, 11);
    const Merged mixed = merge(joined({lines, merge(lines, {1, 2}).lines}));
    EXPECT_GT(mixed.covered, 0U);
    EXPECT_EQ(merge(joined({merge(lines, {1, 2}).lines, lines})).covered, mixed.covered) << "in any order";
    expect_same(mixed.lines, merge(lines).lines);
}

// With memory for few hosts, the merge takes many rounds.
TEST(FleetMerge, InBucketsTheResultIsTheSame) {
    Lines lines = joined({fleet(200, 13), fleet(50, 14, kFleetTime + 77), {"broken"}});
    lines.push_back(R"( {"host" : "spaced"})");
    const Merged whole = merge(lines);
    const Merged parts = merge(lines, {}, 50);
    EXPECT_GT(parts.rounds, 10U);
    EXPECT_EQ(parts.refused, whole.refused);
    expect_same(parts.lines, whole.lines);
    const Lines shard = merge(lines, {2, 3}).lines;
    expect_same(merge(joined({shard, merge(lines, {1, 3}).lines}), {}, 1).lines,
                merge(joined({shard, merge(lines, {1, 3}).lines})).lines);
    const Merged mixed = merge(joined({lines, shard}), {}, 50);
    expect_same(mixed.lines, whole.lines);
    EXPECT_EQ(mixed.covered, merge(joined({lines, shard})).covered);
}

// Rules treat the first 10 keys as the same question, the others as different ones.
std::vector<FleetKey> different_keys() {
    std::vector<FleetKey> keys(21, fleet_key());
    keys[1].machine.packages.reset();
    keys[2].kernel = "6.12 cpu smt";
    keys[3].topology = "x";
    keys[4].scheduler = "x";
    keys[5].partitions = {192, 24};
    keys[6].guard = true;
    keys[7].tolerance = 0.01;
    keys[8].window = "x";
    keys[9].scheduler = "y";
    keys[10].machine.arch = "";
    keys[11].machine.vendor = "x";
    keys[12].machine.model = "x";
    keys[13].machine.cores = 1;
    keys[14].machine.llc_cores = 1;
    keys[15].kernel = "6.13 cpu smt cache numa system";
    keys[16].kind = "x";
    keys[17].reference_origin = "policy";
    keys[18].candidate = "x";
    keys[19].strict = true;
    keys[20].counter = "x";
    return keys;
}
constexpr std::size_t kOfOneQuestion = 10;

TEST(FleetMerge, EachPartOfAKeyKeepsEntriesApart) {
    Random random(6);
    Lines lines;
    for (const FleetKey& key : different_keys())
        lines.push_back(
            text_of(host_line(static_cast<unsigned>(lines.size()), key, measured(16, 0, random))));
    EXPECT_THAT(merge(lines).lines, SizeIs(lines.size()));
    EXPECT_THAT(merge(merge(lines).lines).lines, SizeIs(lines.size()));
}

// Rules do not distinguish schedulers and topologies, so a host with both counts once.
TEST(FleetMerge, AHostCountsOnceForAQuestion) {
    Random random(6);
    Lines lines;
    std::vector<FleetKey> keys = different_keys();
    std::swap(keys[4], keys[kOfOneQuestion - 1]);  // the newest line of the question has another scheduler
    for (const FleetKey& key : keys)
        lines.push_back(text_of(host_line(1, key, measured(16, 0, random),
                                          kFleetTime + static_cast<std::int64_t>(lines.size()))));
    const Lines counting(lines.begin() + kOfOneQuestion - 1, lines.end());
    for (int i = 0; i < 20; i++) {
        const Merged merged = merge(lines, {}, i % 2 == 0 ? 1U << 20U : 5);
        EXPECT_THAT(merged.refused, IsEmpty());
        EXPECT_THAT(merged.notes, IsEmpty());
        expect_same(merged.lines, merge(counting).lines);
        shuffle(lines, random);
    }
    // Of lines with the same time exactly one counts, and it does not depend on the order.
    lines.clear();
    for (std::size_t i = 0; i < kOfOneQuestion; i++)
        lines.push_back(text_of(host_line(1, keys[i], measured(16, 0, random))));
    const Lines one = merge(lines).lines;
    ASSERT_THAT(one, SizeIs(1));
    std::ranges::reverse(lines);
    expect_same(merge(lines).lines, one);
}

// LINES as another program would merge them: with the keys of the contract only, and "guard".
Lines as_others_merge(const Lines& lines) {
    Lines out;
    for (const std::string& line : lines) {
        auto j = nlohmann::ordered_json::parse(line);
        for (const char* key : {"hosts_better", "hosts_worse", "hosts_below", "hosts_above", "hosts_after",
                                "top_better", "top_worse", "spread"})
            j.erase(std::string(key));
        out.push_back(j.dump());
    }
    return out;
}

TEST(FleetMerge, ALineOfAnotherEngineCountsAndTheSumLacksWhatItLacks) {
    const Lines lines = fleet(200, 17);
    const Lines whole = merge(lines).lines;
    const Lines first = merge(lines, {1, 2}).lines;
    const Lines second = merge(lines, {2, 2}).lines;
    const Lines bare = as_others_merge(second);
    for (const Lines& mixed : {joined({first, bare}), joined({bare, first}),
                               joined({as_others_merge(first), bare}), as_others_merge(whole)}) {
        const Merged merged = merge(mixed);
        EXPECT_THAT(merged.refused, IsEmpty());
        EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("makes no rule (reported once)")));
        expect_same(merged.lines, as_others_merge(whole));
        for (const std::string& line : merged.lines)
            EXPECT_THAT(line, testing::Not(HasSubstr("hosts_better")));
    }
    EXPECT_THAT(merge(joined({first, second})).notes, IsEmpty());
}

TEST(FleetMerge, AHostInAMergedLineDoesNotCountAgainUnderAnotherScheduler) {
    const Lines merged = merge(fleet(20, 15)).lines;
    FleetKey key = read(merged)[0].key;
    key.scheduler = "other";
    const Merged mixed = merge(joined({{text_of(host_line(1, key, {}))}, merged}));
    EXPECT_EQ(mixed.covered, 1U);
    expect_same(mixed.lines, merged);
}

TEST(FleetMerge, TwoHistoriesOfOneEntryAreNamedAndTheLaterLineCounts) {
    Random random(7);
    const auto line = [&](unsigned pairs, std::int64_t at, std::uint64_t alarms = 0) {
        HostEvidence own = measured(pairs, 0, random);
        own.alarms = alarms;
        return text_of(host_line(0xc10e, fleet_key(), own, kFleetTime + at));
    };
    const Lines fewer = {line(50, 0), line(20, 1)};
    const Lines same_time = {line(20, 1), line(20, 1)};
    for (const auto& [one, other] : {std::pair(fewer[0], fewer[1]), {same_time[0], same_time[1]}}) {
        const Merged merged = merge({one, other});
        EXPECT_THAT(merged.refused, IsEmpty());
        EXPECT_THAT(merged.notes, ElementsAre(AllOf(HasSubstr("host 0000c10e"), HasSubstr("two machines"))));
        EXPECT_EQ(read(merged.lines)[0].pooled.pairs, 20U);
        expect_same(merge({other, one}).lines, merged.lines);
    }
    EXPECT_THAT(merge({line(50, 0), line(50, 1), line(51, 2)}).notes, IsEmpty());
    EXPECT_THAT(merge({line(50, 0), line(20, 1, 1)}).notes, IsEmpty()) << "the watch's alarm began it anew";
}

}  // namespace
}  // namespace wq
