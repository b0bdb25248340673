// SPDX-License-Identifier: LGPL-2.1-or-later
// Which cores of a machine are P-cores and which are E-cores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.h"
#include "machine/host_facts.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::File;
using test::machine;
using test::TempTree;
using testing::HasSubstr;

CoreKinds read(const TempTree& tree, const Topology& topology) {
    return read_core_kinds(Paths{tree.root()}, topology);
}

TEST(CoreKinds, OfOneKindAreNoHybrid) {
    const TempTree tree;
    EXPECT_FALSE(read(tree, machine({.cores = 4, .threads = 2})).hybrid());
    EXPECT_FALSE(read(tree, machine({.cores = 4})).hybrid());
}

TEST(CoreKinds, ByThePmusOfTheKernel) {
    const TempTree tree{File("sys/devices/cpu_core/cpus", "0-3\n"),
                        File("sys/devices/cpu_atom/cpus", "4-5,9\n"),
                        File("sys/devices/cpu_lowpower/cpus", "6-7\n")};
    const CoreKinds kinds = read(tree, machine({.cores = 8}));
    EXPECT_EQ(kinds.performance.list(), "0-3");
    EXPECT_EQ(kinds.efficient.list(), "4-5") << "CPU 9 is not online";
    EXPECT_EQ(kinds.low_power.list(), "6-7");
    EXPECT_THAT(kinds.source, HasSubstr("cpu_atom"));
}

TEST(CoreKinds, OnePmuAloneSaysNothing) {
    const TempTree tree{File("sys/devices/cpu_atom/cpus", "0-3\n")};
    EXPECT_FALSE(read(tree, machine({.cores = 4})).hybrid());
}

TEST(CoreKinds, ByCapacity) {
    TempTree tree;
    const char* const capacities[] = {"1024", "1010", "718", "600"};
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree.add(File(fmt::format("sys/devices/system/cpu/cpu{}/cpu_capacity", cpu),
                      std::string(capacities[cpu]) + "\n"));
    const Topology topology = machine({.cores = 4});
    EXPECT_EQ(read(tree, topology).performance.list(), "0-1") << "clocks differ among cores of a kind";
    EXPECT_EQ(read(tree, topology).efficient.list(), "2-3");
    tree.write("sys/devices/system/cpu/cpu1/cpu_capacity", "none\n");
    EXPECT_FALSE(read(tree, topology).hybrid()) << "one CPU's is not known";
}

TEST(CoreKinds, ByThreadsWhereNothingElseIsKnown) {
    Topology topology = machine({.cores = 6});
    topology.cores = {{0, 1}, {2, 3}, {4}, {5}};
    CoreKinds kinds = core_kinds_by_threads(topology);
    EXPECT_EQ(kinds.performance.list(), "0-3");
    EXPECT_EQ(kinds.efficient.list(), "4-5");
    EXPECT_THAT(kinds.source, HasSubstr("by the number of threads per core"));
    topology.present.add(6);
    EXPECT_FALSE(core_kinds_by_threads(topology).hybrid()) << "the missing siblings may be offline";
    topology.present = topology.online = CpuSet::range(0, 4);
    topology.cores = {{0, 1}, {2, 3}, {4}};
    EXPECT_FALSE(core_kinds_by_threads(topology).hybrid())
        << "a single core without siblings in a guest does not mean hybrid";
}

}  // namespace
}  // namespace wq
