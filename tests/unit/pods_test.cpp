// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wq {
namespace {

using testing::ElementsAre;

std::vector<std::string> lists(const std::vector<CpuSet>& sets) {
    std::vector<std::string> out;
    out.reserve(sets.size());
    for (const auto& set : sets) out.push_back(set.list());
    return out;
}

CpuSet cpus(const char* list) {
    return *CpuSet::parse_list(list);
}

// Two sockets with 4 cores of 2 threads, one LLC and one node each. As on x86, n and n+8 are siblings.
Topology two_sockets() {
    Topology topology;
    topology.online = topology.present = topology.possible = CpuSet::range(0, 15);
    for (unsigned cpu = 0; cpu < 8; cpu++) topology.cores.push_back({cpu, cpu + 8});
    topology.llcs = {{cpus("0-3,8-11"), 0}, {cpus("4-7,12-15"), 1}};
    topology.nodes = {{0, cpus("0-3,8-11")}, {1, cpus("4-7,12-15")}};
    return topology;
}

// One LLC whose cores have one thread each.
Topology one_llc(unsigned cores) {
    Topology topology;
    topology.online = CpuSet::range(0, cores - 1);
    for (unsigned cpu = 0; cpu < cores; cpu++) topology.cores.push_back({cpu});
    topology.llcs = {{topology.online, std::nullopt}};
    return topology;
}

std::vector<std::size_t> shard_sizes(unsigned cores, unsigned size) {
    const Topology topology = one_llc(cores);
    std::vector<std::size_t> sizes;
    for (const auto& shard : shards_of(topology.online, CoreIndex(topology), size))
        sizes.push_back(shard.count());
    return sizes;
}

TEST(Shards, AreAsManyAsTheKernelMakes) {
    EXPECT_THAT(shard_sizes(1, 8), ElementsAre(1));
    EXPECT_THAT(shard_sizes(11, 8), ElementsAre(11));
    EXPECT_THAT(shard_sizes(12, 8), ElementsAre(6, 6));
    EXPECT_THAT(shard_sizes(20, 8), ElementsAre(7, 7, 6));
    EXPECT_THAT(shard_sizes(72, 8), ElementsAre(8, 8, 8, 8, 8, 8, 8, 8, 8));
    EXPECT_THAT(shard_sizes(3, 65536), ElementsAre(3));
    EXPECT_THAT(shard_sizes(3, 4294967295U), ElementsAre(3));
}

TEST(Shards, SizeZeroMeansOne) {
    EXPECT_THAT(shard_sizes(3, 0), ElementsAre(1, 1, 1));
    EXPECT_EQ(shard_sizes(3, 0), shard_sizes(3, 1));
}

TEST(Shards, KeepSiblingsTogether) {
    const Topology topology = two_sockets();
    EXPECT_THAT(lists(shards_of(cpus("0-3,8-11"), CoreIndex(topology), 2)),
                ElementsAre("0-1,8-9", "2-3,10-11"));
    EXPECT_THAT(lists(shards_of(CpuSet{}, CoreIndex(topology), 2)), ElementsAre());
}

TEST(Pods, PartitionTheCpusOfEveryScope) {
    const Topology topology = two_sockets();
    EXPECT_EQ(pods_of(Scope::cpu, topology, 2).size(), 16U);
    EXPECT_THAT(lists(pods_of(Scope::smt, topology, 2)),
                ElementsAre("0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"));
    EXPECT_THAT(lists(pods_of(Scope::cache_shard, topology, 2)),
                ElementsAre("0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"));
    EXPECT_THAT(lists(pods_of(Scope::cache, topology, 2)), ElementsAre("0-3,8-11", "4-7,12-15"));
    EXPECT_THAT(lists(pods_of(Scope::numa, topology, 2)), ElementsAre("0-3,8-11", "4-7,12-15"));
    EXPECT_THAT(lists(pods_of(Scope::system, topology, 2)), ElementsAre("0-15"));
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
    const CoreIndex index(two_sockets());
    EXPECT_EQ(index.cores_in(cpus("0-15")), 8U);
    EXPECT_EQ(index.cores_in(cpus("0-1,9")), 2U);
    EXPECT_EQ(index.cores_in(cpus("9")), 1U);
    EXPECT_EQ(index.cores_in(CpuSet{}), 0U);
    EXPECT_EQ(index.cores_in(cpus("300")), 0U) << "a CPU of no core";
    EXPECT_THAT(lists(index.split(cpus("1,8-9"))), ElementsAre("1,9", "8"));
}

}  // namespace
}  // namespace wq
