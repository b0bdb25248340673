// SPDX-License-Identifier: LGPL-2.1-or-later
// The LLCs and shards of real machines, whose published counts the trees here are made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/pods.h"
#include "read_tree.h"

namespace wq {
namespace {

using test::cpu_tree;
using test::lists;

struct RealMachine {
    const char* name;
    test::CpuTree tree;
    std::size_t cores, llcs;
    const char *first, *last;           // LLC
    std::size_t shards[3];              // of 4, 8 and 16 cores, all LLCs
    std::vector<std::string> of_first;  // shards of 4 cores of the first LLC
};

const RealMachine kRealMachines[] = {
    {"2x EPYC 7451",
     {.sockets = 2, .cores = 24, .threads = 2, .llcs = 8, .nodes = 4},
     48,
     16,
     "0-2,48-50",
     "45-47,93-95",
     {16, 16, 16},
     {"0-2,48-50"}},
    {"2x EPYC 9654",
     {.sockets = 2, .cores = 96, .threads = 2, .llcs = 12},
     192,
     24,
     "0-7,192-199",
     "184-191,376-383",
     {48, 24, 24},
     {"0-3,192-195", "4-7,196-199"}},
    {"4x Opteron 6276",
     {.sockets = 4, .cores = 8, .threads = 2, .llcs = 2, .nodes = 2, .neighbours = true},
     32,
     8,
     "0-7",
     "56-63",
     {8, 8, 8},
     {"0-7"}},
    // One L3 per socket, cut at the node.
    {"2x Xeon 8480+ with SNC4",
     {.sockets = 2, .cores = 56, .threads = 2, .nodes = 4},
     112,
     8,
     "0-13,112-125",
     "98-111,210-223",
     {32, 16, 8},
     {"0-3,112-115", "4-7,116-119", "8-10,120-122", "11-13,123-125"}},
    {"2x Xeon with SNC2",
     {.sockets = 2, .cores = 20, .threads = 2, .nodes = 2},
     40,
     4,
     "0-9,40-49",
     "30-39,70-79",
     {12, 4, 4},
     {"0-3,40-43", "4-6,44-46", "7-9,47-49"}},
    {"4x Xeon, CPUs offline",
     {.sockets = 4, .cores = 2, .threads = 2, .interleaved = true, .offline = "2,5,13-14", .stale = true},
     7,
     4,
     "0,4,8,12",
     "6,10",
     {4, 4, 4},
     {"0,4,8,12"}},
    {"2x Xeon E5-2680v3, CPUs offline",
     {.sockets = 2, .cores = 12, .interleaved = true, .offline = "0-3,21-23", .stale = true},
     17,
     2,
     "4,6,8,10,12,14,16,18,20",
     "5,7,9,11,13,15,17,19",
     {4, 2, 2},
     {"4,6,8,10,12", "14,16,18,20"}},
    {"2x Kunpeng 920",
     {.sockets = 2, .cores = 64, .llcs = 2, .nodes = 2, .clusters = 16},
     128,
     4,
     "0-31",
     "96-127",
     {32, 16, 8},
     {"0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31"}},
    {"NVIDIA GB10", {.cores = 20, .llcs = 2}, 20, 2, "0-9", "10-19", {6, 2, 2}, {"0-3", "4-6", "7-9"}},
    {"NVIDIA Grace",
     {.cores = 72, .arch = "aarch64"},
     72,
     1,
     "0-71",
     "0-71",
     {18, 9, 5},
     {"0-3", "4-7", "8-11", "12-15", "16-19", "20-23", "24-27", "28-31", "32-35", "36-39", "40-43", "44-47",
      "48-51", "52-55", "56-59", "60-63", "64-67", "68-71"}},
    {"POWER7",
     {.sockets = 8, .cores = 8, .threads = 4, .llcs = 8, .neighbours = true},
     64,
     64,
     "0-3",
     "252-255",
     {64, 64, 64},
     {"0-3"}},
    {"s390 z196", {.sockets = 20, .cores = 1, .caches = false}, 20, 20, "0", "19", {20, 20, 20}, {"0"}},
};

TEST(Machines, HaveTheLlcsAndShardsOfTheKernel) {
    for (const RealMachine& m : kRealMachines) {
        SCOPED_TRACE(m.name);
        const Topology topology = test::read(test::TempTree{cpu_tree(m.tree)});
        EXPECT_THAT(topology.warnings, testing::IsEmpty());
        EXPECT_EQ(topology.cores.size(), m.cores);
        ASSERT_EQ(topology.llcs.size(), m.llcs);
        EXPECT_EQ(topology.llcs.front().cpus.list(), m.first);
        EXPECT_EQ(topology.llcs.back().cpus.list(), m.last);
        for (const unsigned size : {4U, 8U, 16U})
            EXPECT_EQ(pods_of(Scope::cache_shard, topology, size).size(), m.shards[size / 8]) << size;
        EXPECT_EQ(lists(shards_of(topology.llcs.front().cpus, CoreIndex(topology), 4)), m.of_first);
    }
}

}  // namespace
}  // namespace wq
