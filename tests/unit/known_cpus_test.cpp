// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.h"
#include "machine/hwloc_topology.h"
#include "machine/pods_file.h"

namespace wq {
namespace {

using test::machine;
using test::without;
using testing::ElementsAre;

std::vector<std::string> cores_of(const Topology& topology) {
    std::vector<std::string> out;
    for (const CpuSet& core : topology.cores) out.push_back(core.list());
    return out;
}

std::vector<std::string> llcs_of(const Topology& topology) {
    std::vector<std::string> out;
    for (const Llc& llc : topology.llcs) out.push_back(llc.cpus.list());
    return out;
}

std::vector<std::string> nodes_of(const Topology& topology) {
    std::vector<std::string> out;
    for (const NumaNode& node : topology.nodes) out.push_back(node.cpus.list());
    return out;
}

const Topology kEightCpus = machine({.sockets = 2, .cores = 2, .threads = 2});  // n and n+4 are siblings

void expect_all_of_two_sockets(const KnownCpus& known) {
    EXPECT_EQ(known.cpus().list(), "0-7");
    EXPECT_EQ(known.topology().online.list(), "0-7");
    EXPECT_THAT(cores_of(known.topology()), ElementsAre("0,4", "1,5", "2,6", "3,7"));
    EXPECT_THAT(llcs_of(known.topology()), ElementsAre("0-1,4-5", "2-3,6-7"));
    EXPECT_THAT(nodes_of(known.topology()), ElementsAre("0-1,4-5", "2-3,6-7"));
}

TEST(KnownCpus, AreNoneAtFirst) {
    EXPECT_TRUE(KnownCpus().cpus().empty());
}

TEST(KnownCpus, StayInTheirGroupsWhenTheyGoOffline) {
    // One thread, a core, all second threads, a whole socket, CPU 0.
    for (const char* offline : {"4", "1,5", "4-7", "2-3,6-7", "0"}) {
        KnownCpus known;
        known.see(kEightCpus);
        known.see(without(kEightCpus, offline));
        expect_all_of_two_sockets(known);
        known.see(kEightCpus);
        expect_all_of_two_sockets(known);
    }
}

// A daemon that was started when all CPUs were online, and restarted since.
Topology since_start(Topology now) {
    now.first = CpuSet::range(0, 7);
    return now;
}

// The kernel made its pods without it.
TEST(KnownCpus, AreNotThoseThatComeLater) {
    KnownCpus known;
    known.see(without(kEightCpus, "3,7"));
    known.see(kEightCpus);
    EXPECT_EQ(known.cpus().list(), "0-2,4-6");
    EXPECT_EQ(known.topology().online.list(), "0-7") << "the pods of 3 and 7 matter";
    known.see(without(kEightCpus, "3,7"));
    EXPECT_EQ(known.topology().online.list(), "0-2,4-6");

    KnownCpus after_a_restart;
    Topology now = kEightCpus;
    now.first = known.cpus();
    after_a_restart.see(now);
    EXPECT_EQ(after_a_restart.cpus().list(), "0-2,4-6");
}

TEST(KnownCpus, AreThoseOfTheFirstStartInThisBoot) {
    test::TempTree tree{test::cpu_tree({.cores = 4, .offline = "3"})};
    const auto look = [&] { return read_topology("live", tree.root()).value(); };
    EXPECT_TRUE(look().first.empty());
    Topology doubtful = look();
    doubtful.warnings = {"garbage"};
    ASSERT_TRUE(keep_first_cpus(Paths{tree.root()}, doubtful));
    EXPECT_TRUE(look().first.empty());
    ASSERT_TRUE(keep_first_cpus(Paths{tree.root()}, look()));
    tree.remove("sys");
    tree.add(test::cpu_tree({.cores = 4}));
    ASSERT_TRUE(keep_first_cpus(Paths{tree.root()}, look()));
    EXPECT_EQ(look().first.list(), "0-2") << "CPU 3 came later";
}

TEST(KnownCpus, AreFoundOneAfterAnother) {
    KnownCpus known;
    known.see(since_start(without(kEightCpus, "4-7")));
    EXPECT_EQ(known.cpus().list(), "0-3");
    EXPECT_THAT(cores_of(known.topology()), ElementsAre("0", "1", "2", "3"));
    known.see(without(kEightCpus, "0-3"));  // all CPUs were never online at once
    EXPECT_EQ(known.cpus().list(), "0-7");
    known.see(kEightCpus);
    expect_all_of_two_sockets(known);
}

// First only the first threads were online, then only the second ones: two groups per core, LLC and node.
TEST(KnownCpus, AreInOneGroupAsSoonAsItsPartsAreSeenTogether) {
    KnownCpus known;
    known.see(since_start(without(kEightCpus, "4-7")));
    known.see(without(kEightCpus, "0-3"));
    known.see(without(kEightCpus, "7"));
    EXPECT_EQ(known.cpus().list(), "0-7");
    EXPECT_THAT(cores_of(known.topology()), ElementsAre("0,4", "1,5", "2,6", "3", "7"));
    EXPECT_THAT(llcs_of(known.topology()), ElementsAre("0-1,4-5", "2-3,6-7"));
    EXPECT_THAT(nodes_of(known.topology()), ElementsAre("0-1,4-5", "2-3,6-7"));
}

TEST(KnownCpus, DoNotCountWhileIsolated) {
    Topology isolated = kEightCpus;
    isolated.isolated = {3, 7};
    KnownCpus known;
    known.see(isolated);
    EXPECT_EQ(known.cpus().list(), "0-2,4-6");
    known.see(kEightCpus);
    EXPECT_EQ(known.cpus().list(), "0-2,4-6");
}

// The files of an isolated CPU still show its core and node, but not its LLC.
TEST(KnownCpus, KeepTheirLlcWhenIsolatedLater) {
    Topology later = kEightCpus;
    later.isolated = {3, 7};
    later.llcs[1].cpus = {2, 6};
    KnownCpus known;
    known.see(kEightCpus);
    known.see(later);
    expect_all_of_two_sockets(known);
    EXPECT_EQ(known.topology().isolated.list(), "3,7");
    known.see(kEightCpus);
    expect_all_of_two_sockets(known);
    EXPECT_EQ(known.topology().isolated.list(), "");
}

Topology in_doubt() {
    Topology out = kEightCpus;
    out.llcs.clear();
    for (const CpuSet& core : out.cores) out.llcs.push_back({core, std::nullopt});
    out.warnings = {"garbage"};
    return out;
}

TEST(KnownCpus, LearnNothingFromALookInDoubt) {
    KnownCpus known;
    known.see(in_doubt());
    EXPECT_THAT(known.topology().warnings, ElementsAre("garbage"));
    EXPECT_EQ(known.topology().online.list(), "0-7") << "to be shown";
    known.see(without(kEightCpus, "7"));
    EXPECT_THAT(llcs_of(known.topology()), ElementsAre("0-1,4-5", "2-3,6"));
    EXPECT_EQ(known.cpus().list(), "0-6");
    EXPECT_TRUE(known.topology().warnings.empty());
}

TEST(KnownCpus, StayInTheirGroupsThroughALookInDoubt) {
    KnownCpus known;
    known.see(kEightCpus);
    known.see(in_doubt());
    EXPECT_THAT(known.topology().warnings, ElementsAre("garbage"));
    expect_all_of_two_sockets(known);
    known.see(without(kEightCpus, "7"));
    EXPECT_TRUE(known.topology().warnings.empty());
    expect_all_of_two_sockets(known);
}

TEST(KnownCpus, PassOnWhatIsPresentNow) {
    KnownCpus known;
    known.see(kEightCpus);
    Topology fewer = without(kEightCpus, "7");
    fewer.present = CpuSet::range(0, 6);
    fewer.possible = CpuSet::range(0, 15);
    fewer.warnings = {"careful"};
    fewer.llc_unknown = "nobody tells";
    known.see(fewer);
    EXPECT_EQ(known.topology().present.list(), "0-6");
    EXPECT_EQ(known.topology().possible.list(), "0-15");
    EXPECT_THAT(known.topology().warnings, ElementsAre("careful"));
    EXPECT_EQ(known.topology().llc_unknown, "nobody tells");
}

}  // namespace
}  // namespace wq
