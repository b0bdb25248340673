// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.h"
#include "machine/hwloc_topology.h"
#include "machine/pods_file.h"
#include "read_tree.h"

namespace wq {
namespace {

using test::lists;
using test::llcs;
using test::machine;
using test::without;
using testing::ElementsAre;

const Topology kEightCpus = machine({.sockets = 2, .cores = 2, .threads = 2});  // n and n+4 are siblings

// What one look at the machine finds.
struct Look {
    const char* offline = "";
    const char* isolated = "";
    bool in_doubt = false;
    const char* first = "";  // usable when the daemon first started in this boot; "": it starts now
};

Topology topology_of(const Look& look) {
    Topology out = without(kEightCpus, look.offline);
    out.isolated = CpuSet::parse_list(look.isolated).value();
    // The files of an isolated CPU still show its core and node, but not its LLC.
    for (Llc& llc : out.llcs) llc.cpus -= out.isolated;
    out.first = CpuSet::parse_list(look.first).value();
    if (!look.in_doubt) return out;
    out.llcs.clear();
    for (const CpuSet& core : out.cores) out.llcs.push_back({core, std::nullopt});
    out.warnings = {"garbage"};
    return out;
}

// "cores | LLCs | nodes" as KNOWN has them.
std::string groups_of(const Topology& known) {
    std::vector<CpuSet> nodes;
    for (const NumaNode& node : known.nodes) nodes.push_back(node.cpus);
    return fmt::format("{} | {} | {}", fmt::join(lists(known.cores), " "), fmt::join(llcs(known), " "),
                       fmt::join(lists(nodes), " "));
}

TEST(KnownCpus, AfterSomeLooks) {
    constexpr const char* kAll = "0,4 1,5 2,6 3,7 | 0-1,4-5 2-3,6-7 | 0-1,4-5 2-3,6-7";
    struct Row {
        std::vector<Look> looks;
        const char *cpus, *online;
        const char* groups = nullptr;  // null: not compared
        const char* isolated = "";
        bool in_doubt = false;
    };
    std::vector<Row> rows = {
        // Those that come later are not known: the kernel made its pods without them.
        {{{"3,7"}, {}}, "0-2,4-6", "0-7"},
        {{{"3,7"}, {}, {"3,7"}}, "0-2,4-6", "0-2,4-6"},
        {{{.first = "0-2,4-6"}}, "0-2,4-6", "0-7"},
        // A daemon that was started when all CPUs were online, and restarted since. They are never online at
        // once.
        {{{.offline = "4-7", .first = "0-7"}}, "0-3", "0-3", "0 1 2 3 | 0-1 2-3 | 0-1 2-3"},
        {{{.offline = "4-7", .first = "0-7"}, {"0-3"}}, "0-7", "0-7"},
        {{{.offline = "4-7", .first = "0-7"}, {"0-3"}, {}}, "0-7", "0-7", kAll},
        // In one group as soon as its parts are seen together.
        {{{.offline = "4-7", .first = "0-7"}, {"0-3"}, {"7"}},
         "0-7",
         "0-7",
         "0,4 1,5 2,6 3 7 | 0-1,4-5 2-3,6-7 | 0-1,4-5 2-3,6-7"},
        {{{.isolated = "3,7"}}, "0-2,4-6", "0-7", nullptr, "3,7"},
        {{{.isolated = "3,7"}, {}}, "0-2,4-6", "0-7"},
        {{{}, {.isolated = "3,7"}}, "0-7", "0-7", kAll, "3,7"},
        {{{}, {.isolated = "3,7"}, {}}, "0-7", "0-7", kAll},
        // Nothing is learned from a look in doubt, which is shown all the same.
        {{{.in_doubt = true}}, "", "0-7", nullptr, "", true},
        {{{.in_doubt = true}, {"7"}}, "0-6", "0-6", "0,4 1,5 2,6 3 | 0-1,4-5 2-3,6 | 0-1,4-5 2-3,6"},
        {{{}, {.in_doubt = true}}, "0-7", "0-7", kAll, "", true},
        {{{}, {.in_doubt = true}, {"7"}}, "0-7", "0-7", kAll},
    };
    // One thread, a core, all second threads, a whole socket, CPU 0.
    for (const char* offline : {"4", "1,5", "4-7", "2-3,6-7", "0"}) {
        rows.push_back({{{}, {offline}}, "0-7", "0-7", kAll});
        rows.push_back({{{}, {offline}, {}}, "0-7", "0-7", kAll});
    }
    for (const Row& row : rows) {
        SCOPED_TRACE(&row - rows.data());
        KnownCpus known;
        EXPECT_TRUE(known.cpus().empty());
        for (const Look& look : row.looks) known.see(topology_of(look));
        EXPECT_EQ(known.cpus().list(), row.cpus);
        EXPECT_EQ(known.topology().online.list(), row.online);
        EXPECT_EQ(known.topology().isolated.list(), row.isolated);
        EXPECT_EQ(known.topology().warnings, std::vector<std::string>(row.in_doubt ? 1 : 0, "garbage"));
        if (row.groups != nullptr) {
            EXPECT_EQ(groups_of(known.topology()), row.groups);
        }
    }
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
