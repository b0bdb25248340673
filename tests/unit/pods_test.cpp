// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "fake_machine.h"
#include "plan/pods.h"
#include "read_tree.h"

namespace wq {
namespace {

using test::lists;
using testing::ElementsAre;

// ---- pods

CpuSet cpus(const char* list) {
    return *CpuSet::parse_list(list);
}

// As on x86, n and n+8 are siblings.
Topology two_sockets() {
    return test::machine({.sockets = 2, .cores = 4, .threads = 2});
}

// ShardsProperty has more.
TEST(Shards, KeepSiblingsTogetherAndSizeZeroMeansOne) {
    const Topology topology = two_sockets();
    const CoreIndex index(topology);
    const CpuSet llc = cpus("0-3,8-11");
    EXPECT_THAT(lists(shards_of(llc, index, 2)), ElementsAre("0-1,8-9", "2-3,10-11"));
    EXPECT_EQ(shards_of(llc, index, 0).size(), 4U);
    EXPECT_EQ(shards_of(llc, index, 0), shards_of(llc, index, 1));
    for (const unsigned large : {65536U, 4294967295U}) EXPECT_EQ(shards_of(llc, index, large).size(), 1U);
    EXPECT_THAT(shards_of(CpuSet{}, index, 2), testing::IsEmpty());
}

TEST(Pods, AreOneForNumaWhereNoNodeIsKnown) {
    Topology topology = two_sockets();
    topology.nodes.clear();
    EXPECT_THAT(lists(pods_of(Scope::numa, topology, 2)), ElementsAre("0-15"));
}

TEST(Pods, SetIsolatedCpusApart) {
    Topology topology = two_sockets();
    topology.isolated = cpus("3,11,12");
    for (auto& llc : topology.llcs) llc.cpus -= topology.isolated;
    EXPECT_THAT(lists(pods_of(Scope::cache, topology, 2)), ElementsAre("0-2,8-10", "3,11-12", "4-7,13-15"));
    EXPECT_THAT(lists(pods_of(Scope::cache_shard, topology, 2)),
                ElementsAre("0-1,8-9", "2,10", "3,11-12", "4-5,13", "6-7,14-15"));
    EXPECT_THAT(lists(pods_of(Scope::smt, topology, 2)),
                ElementsAre("0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"));
}

TEST(Pods, OfNothingAreNone) {
    for (Scope scope : kAllScopes) EXPECT_TRUE(pods_of(scope, Topology{}, 8).empty());
}

TEST(Restrict, CutsPodsToTheEffectiveCpus) {
    const Topology topology = two_sockets();
    EXPECT_THAT(lists(restrict_to(pods_of(Scope::cache, topology, 2), cpus("2-3,12"))),
                ElementsAre("2-3", "12"));
    // Cutting may change the order: 0,8 becomes 8, which comes after 1.
    EXPECT_THAT(lists(restrict_to({cpus("0,8"), cpus("1,9")}, cpus("1,8"))), ElementsAre("1", "8"));
}

TEST(Cores, CountWithOneCpuInThePod) {
    const Topology topology = two_sockets();
    const CoreIndex index(topology);
    EXPECT_EQ(index.cores_in(cpus("0-15")), 8U);
    EXPECT_EQ(index.cores_in(cpus("0-1,9")), 2U);
    EXPECT_EQ(index.cores_in(cpus("9")), 1U);
    EXPECT_EQ(index.cores_in(CpuSet{}), 0U);
    EXPECT_EQ(index.cores_in(cpus("300")), 0U) << "a CPU of no core";
    EXPECT_THAT(lists(index.split(cpus("1,8-9"))), ElementsAre("1,9", "8"));
}

// ---- shards property

// One LLC of CORES x THREADS CPUs with shuffled numbers.
Topology shuffled(unsigned cores, unsigned threads, std::mt19937& random) {
    std::vector<unsigned> numbers(std::size_t{cores} * threads);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::ranges::shuffle(numbers, random);
    Topology topology;
    for (unsigned core = 0; core < cores; core++) {
        CpuSet set;
        for (unsigned thread = 0; thread < threads; thread++) set.add(numbers[core * threads + thread]);
        topology.cores.push_back(std::move(set));
    }
    std::ranges::sort(topology.cores, {}, &CpuSet::first);
    topology.online = CpuSet::range(0, cores * threads - 1);
    topology.llcs = {{topology.online, std::nullopt}};
    return topology;
}

// Returns the CPUs of the first n cores, for every n. A shard must be the difference of two of these sets:
// the next cores by leader, with all their siblings, so that no CPU is missing or in two shards.
std::vector<CpuSet> growing(const std::vector<CpuSet>& cores) {
    std::vector<CpuSet> sums(1);
    for (const auto& core : cores) sums.push_back(sums.back() | core);
    return sums;
}

void check(const std::vector<CpuSet>& shards, const std::vector<CpuSet>& sums, unsigned size) {
    const std::size_t cores = sums.size() - 1;
    const std::size_t wanted = std::max<std::size_t>((cores + size / 2) / size, 1);
    ASSERT_EQ(shards.size(), wanted);
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted; i++) {
        // ceil((cores - i) / wanted): sizes differ by one at most, the larger ones first.
        const std::size_t end = next + (cores - i + wanted - 1) / wanted;
        ASSERT_EQ(shards[i], sums[end] - sums[next]) << "shard " << i;
        next = end;
    }
    ASSERT_EQ(next, cores);
}

class ShardsProperty : public testing::TestWithParam<unsigned> {};

TEST_P(ShardsProperty, HoldsForEveryCountOfCoresAndSize) {
    const unsigned threads = GetParam();
    std::mt19937 random(20260301 + threads);
    for (unsigned cores = 1; cores <= 200; cores++) {
        const Topology topology = shuffled(cores, threads, random);
        const auto sums = growing(topology.cores);
        for (unsigned size = 1; size <= 64; size++) {
            check(shards_of(topology.cores, size), sums, size);
            if (HasFatalFailure()) FAIL() << cores << " cores of " << threads << " threads, size " << size;
        }
        // The split of an LLC into cores does not depend on the size: one size is enough.
        const unsigned size = 1 + random() % 64;
        check(shards_of(topology.llcs.front().cpus, CoreIndex(topology), size), sums, size);
    }
}

INSTANTIATE_TEST_SUITE_P(Threads, ShardsProperty, testing::Range(1U, 9U));

// ---- machines

// "CORES cores, N LLCs, FIRST to LAST; shards of 4, 8, 16 cores in all; those of 4 cores of the first LLC".
std::string summary(const Topology& t) {
    const auto shards = [&](unsigned size) { return pods_of(Scope::cache_shard, t, size).size(); };
    return fmt::format("{} cores, {} LLCs, {} to {}; {} {} {}; {}", t.cores.size(), t.llcs.size(),
                       t.llcs.front().cpus.list(), t.llcs.back().cpus.list(), shards(4), shards(8),
                       shards(16), fmt::join(lists(shards_of(t.llcs.front().cpus, CoreIndex(t), 4)), " "));
}

TEST(Machines, HaveTheLlcsAndShardsOfTheKernel) {
    const struct {
        const char* name;
        test::CpuTree tree;
        const char* summary;
    } machines[] = {
        {"2x EPYC 7451",
         {.sockets = 2, .cores = 24, .threads = 2, .llcs = 8, .nodes = 4},
         "48 cores, 16 LLCs, 0-2,48-50 to 45-47,93-95; 16 16 16; 0-2,48-50"},
        {"2x EPYC 9654",
         {.sockets = 2, .cores = 96, .threads = 2, .llcs = 12},
         "192 cores, 24 LLCs, 0-7,192-199 to 184-191,376-383; 48 24 24; 0-3,192-195 4-7,196-199"},
        {"4x Opteron 6276",
         {.sockets = 4, .cores = 8, .threads = 2, .llcs = 2, .nodes = 2, .neighbours = true},
         "32 cores, 8 LLCs, 0-7 to 56-63; 8 8 8; 0-7"},
        // One L3 per socket, cut at the node.
        {"2x Xeon 8480+ with SNC4",
         {.sockets = 2, .cores = 56, .threads = 2, .nodes = 4},
         "112 cores, 8 LLCs, 0-13,112-125 to 98-111,210-223; 32 16 8; 0-3,112-115 4-7,116-119 8-10,120-122 "
         "11-13,123-125"},
        {"2x Xeon with SNC2",
         {.sockets = 2, .cores = 20, .threads = 2, .nodes = 2},
         "40 cores, 4 LLCs, 0-9,40-49 to 30-39,70-79; 12 4 4; 0-3,40-43 4-6,44-46 7-9,47-49"},
        {"4x Xeon, CPUs offline",
         {.sockets = 4, .cores = 2, .threads = 2, .interleaved = true, .offline = "2,5,13-14", .stale = true},
         "7 cores, 4 LLCs, 0,4,8,12 to 6,10; 4 4 4; 0,4,8,12"},
        {"2x Xeon E5-2680v3, CPUs offline",
         {.sockets = 2, .cores = 12, .interleaved = true, .offline = "0-3,21-23", .stale = true},
         "17 cores, 2 LLCs, 4,6,8,10,12,14,16,18,20 to 5,7,9,11,13,15,17,19; 4 2 2; 4,6,8,10,12 14,16,18,20"},
        {"2x Kunpeng 920",
         {.sockets = 2, .cores = 64, .llcs = 2, .nodes = 2, .clusters = 16},
         "128 cores, 4 LLCs, 0-31 to 96-127; 32 16 8; 0-3 4-7 8-11 12-15 16-19 20-23 24-27 28-31"},
        {"NVIDIA GB10", {.cores = 20, .llcs = 2}, "20 cores, 2 LLCs, 0-9 to 10-19; 6 2 2; 0-3 4-6 7-9"},
        {"NVIDIA Grace",
         {.cores = 72, .arch = "aarch64"},
         "72 cores, 1 LLCs, 0-71 to 0-71; 18 9 5; 0-3 4-7 8-11 12-15 16-19 20-23 24-27 28-31 32-35 36-39 "
         "40-43 44-47 48-51 52-55 56-59 60-63 64-67 68-71"},
        {"POWER7",
         {.sockets = 8, .cores = 8, .threads = 4, .llcs = 8, .neighbours = true},
         "64 cores, 64 LLCs, 0-3 to 252-255; 64 64 64; 0-3"},
        {"s390 z196",
         {.sockets = 20, .cores = 1, .caches = false},
         "20 cores, 20 LLCs, 0 to 19; 20 20 20; 0"},
    };
    for (const auto& m : machines) {
        const Topology topology = test::read(test::TempTree{test::cpu_tree(m.tree)});
        EXPECT_THAT(topology.warnings, testing::IsEmpty()) << m.name;
        EXPECT_EQ(summary(topology), m.summary) << m.name;
    }
}

}  // namespace
}  // namespace wq
