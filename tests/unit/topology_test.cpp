// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ctl/machine.h"
#include "fake_machine.h"
#include "machine/topology.h"
#include "plan/pods.h"
#include "read_tree.h"

namespace wq {
namespace {

using test::cpu_tree;
using test::Dir;
using test::lists;
using test::llcs;
using test::read;
using test::share;
using test::TempTree;
using test::why_not;
using test::without;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCpuFolder = "sys/devices/system/cpu/";
const std::string kNode = "sys/devices/system/node/";

// The text of node0/cpumap for LIST.
std::string mask_of(const std::string& list) {
    return CpuSet::parse_list(list).value().mask() + "\n";
}

void remove_from_all(TempTree& tree, unsigned cpus, const std::vector<std::string>& files) {
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        for (const auto& file : files) tree.remove(fmt::format("{}cpu{}/{}", kCpuFolder, cpu, file));
}

// --- valid machines ---

TEST(Topology, OfTwoSockets) {
    const TempTree tree{cpu_tree({.sockets = 2, .cores = 4, .threads = 2})};
    const Topology topology = read(tree);
    EXPECT_EQ(topology.source, "fsroot:" + tree.root());
    EXPECT_EQ(read_topology("live", tree.root()).value().source, "live");
    EXPECT_EQ(topology.online.list(), "0-15");
    EXPECT_THAT(lists(topology.cores),
                ElementsAre("0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"));
    EXPECT_THAT(llcs(topology), ElementsAre("0-3,8-11", "4-7,12-15"));
    EXPECT_EQ(topology.llcs[0].numa_node, 0U);
    EXPECT_EQ(topology.llcs[1].numa_node, 1U);
    ASSERT_EQ(topology.nodes.size(), 2U);
    EXPECT_EQ(topology.nodes[1].cpus.list(), "4-7,12-15");
    EXPECT_THAT(lists(topology.packages), ElementsAre("0-3,8-11", "4-7,12-15"));
    EXPECT_THAT(topology.warnings, IsEmpty());
}

TEST(Topology, TellsPresentPossibleAndIsolated) {
    const TempTree tree{cpu_tree({.cores = 8, .offline = "6-7", .isolated = "2,6", .extra_possible = 8})};
    const Topology topology = read(tree);
    EXPECT_EQ(topology.online.list(), "0-5");
    EXPECT_EQ(topology.present.list(), "0-7");
    EXPECT_EQ(topology.possible.list(), "0-15");
    EXPECT_EQ(topology.isolated.list(), "2") << "6 is not online";
    EXPECT_THAT(llcs(topology), ElementsAre("0-1,3-5")) << "what pod 2 is in cannot be known";
    EXPECT_EQ(topology.cores.size(), 6U);
}

TEST(Topology, OfHybridCores) {
    TempTree tree{cpu_tree({.cores = 8})};
    for (const char* pair : {"0-1", "2-3"})
        for (const char* file :
             {"topology/thread_siblings", "cache/index0/shared_cpu_map", "cache/index2/shared_cpu_map"})
            share(tree, pair, file);
    share(tree, "4-7", "cache/index2/shared_cpu_map");
    const Topology topology = read(tree);
    EXPECT_THAT(lists(topology.cores), ElementsAre("0-1", "2-3", "4", "5", "6", "7"));
    EXPECT_THAT(llcs(topology), ElementsAre("0-7"));
    EXPECT_THAT(topology.warnings, IsEmpty());
}

TEST(Topology, NeverCutsACore) {
    TempTree tree{cpu_tree({.cores = 4, .threads = 2, .nodes = 2})};
    // Each of the two nodes has one thread of core 1 (CPUs 1 and 5).
    tree.write(kNode + "node0/cpumap", mask_of("0-1,4"));
    tree.write(kNode + "node0/cpulist", "0-1,4\n");
    tree.write(kNode + "node1/cpumap", mask_of("2-3,5-7"));
    tree.write(kNode + "node1/cpulist", "2-3,5-7\n");
    EXPECT_THAT(llcs(read(tree)), ElementsAre("0-1,4-5", "2-3,6-7"));
}

TEST(Topology, OfMasksWithoutListsAndWithoutAnOnlineFile) {
    TempTree tree{cpu_tree({.sockets = 2, .cores = 2, .threads = 4, .neighbours = true, .offline = "5"})};
    for (const char* file : {"online", "present", "possible", "isolated"}) tree.remove(kCpuFolder + file);
    remove_from_all(tree, 16,
                    {"topology/thread_siblings_list", "cache/index0/shared_cpu_list",
                     "cache/index1/shared_cpu_list", "cache/index2/shared_cpu_list", "cache/index3"});
    tree.remove(kNode + "online");
    const Topology topology = read(tree);
    EXPECT_EQ(topology.online.list(), "0-4,6-15");
    EXPECT_EQ(topology.present.list(), "0-15");
    EXPECT_THAT(lists(topology.cores), ElementsAre("0-3", "4,6-7", "8-11", "12-15"));
    EXPECT_EQ(llcs(topology), lists(topology.cores)) << "POWER7: L2 and L3 are a core's own";
    EXPECT_THAT(topology.warnings, IsEmpty());
}

// --- absurd files ---

// The test makes the text: the parameters are made at each start of the program.
struct Absurd {
    const char* name;
    std::string (*text)();
};
void PrintTo(const Absurd& absurd, std::ostream* out) {
    *out << absurd.name;
}

std::string megabyte() {
    std::string out;
    while (out.size() < 1U << 20) out += "0-3,";
    return out + "0\n";
}

constexpr Absurd kAbsurdities[] = {
    {"garbage", [] { return std::string("these are not numbers\n"); }},
    {"range past 2^31", [] { return std::string("0-2147483648\n"); }},
    {"number past 2^64", [] { return std::string("99999999999999999999999\n"); }},
    {"one megabyte", megabyte},
    {"bytes", [] { return std::string("\x01\xff\x1b[31m\x00\x80", 9); }},
    {"reversed", [] { return std::string("3-0\n"); }}};

class AbsurdFiles : public testing::TestWithParam<Absurd> {
  protected:
    TempTree tree_{cpu_tree({.cores = 4, .threads = 2})};
    const std::string text_ = GetParam().text();

    // Writes the parameter to FILE and reads the tree.
    Topology read_with(const std::string& file) {
        tree_.write(file, text_);
        return read(tree_);
    }
};

TEST_P(AbsurdFiles, OnlineIsAnError) {
    tree_.write(kCpuFolder + "online", text_);
    EXPECT_THAT(why_not("fsroot:" + tree_.root()), HasSubstr("cpu/online"));
}

// Each file costs a CPU its core or its cache, which its sibling knows too, or the machine its nodes.
TEST_P(AbsurdFiles, AreLeftOutWithOneWarning) {
    for (const std::string& file :
         {kCpuFolder + "cpu5/topology/thread_siblings", kCpuFolder + "cpu0/cache/index3/shared_cpu_map",
          kCpuFolder + "cpu0/cache/index3/level", kNode + "node0/cpumap"}) {
        const std::string sane = tree_.read(file);
        const Topology topology = read_with(file);
        tree_.write(file, sane);
        EXPECT_THAT(llcs(topology), ElementsAre("0-7")) << file;
        EXPECT_EQ(topology.cores.size(), file.ends_with("thread_siblings") ? 5U : 4U);
        EXPECT_EQ(topology.nodes.size(), file.ends_with("cpumap") ? 0U : 1U);
        ASSERT_EQ(topology.warnings.size(), 1U) << file;
        const std::string& warning = topology.warnings[0];
        EXPECT_THAT(warning, HasSubstr(file));
        EXPECT_TRUE(std::ranges::all_of(warning, [](char c) { return c >= ' ' && c <= '~'; }));
        EXPECT_LT(warning.size(), 300U);
        EXPECT_THAT(ctl::topology_json(topology, {}, 8).dump(), HasSubstr("warnings"));
    }
}

TEST_P(AbsurdFiles, SharedCpusOfAWholeCoreLeaveItAlone) {
    tree_.write(kCpuFolder + "cpu0/cache/index3/shared_cpu_map", text_);
    const Topology topology = read_with(kCpuFolder + "cpu4/cache/index3/shared_cpu_map");
    EXPECT_THAT(llcs(topology), ElementsAre("0,4", "1-3,5-7"));
    EXPECT_THAT(topology.warnings, ElementsAre(HasSubstr("(and 1 more like it)")));
}

TEST_P(AbsurdFiles, OthersAreIgnored) {
    for (const char* file : {"present", "possible", "isolated"}) tree_.write(kCpuFolder + file, text_);
    for (const char* file : {"online", "has_memory", "node0/meminfo", "node0/distance"})
        tree_.write(kNode + file, text_);
    for (const char* file : {"topology/core_id", "topology/package_cpus", "cache/index3/size"})
        tree_.write(kCpuFolder + "cpu1/" + file, text_);
    for (const char* file : {"proc/cpuinfo", "proc/self/cgroup"}) tree_.write(file, text_);
    const Topology topology = read(tree_);
    EXPECT_EQ(topology.possible.list(), "0-7");
    EXPECT_THAT(llcs(topology), ElementsAre("0-7"));
    EXPECT_THAT(topology.warnings, ElementsAre(HasSubstr("cpu/present: "))) << "possible and isolated, too";
    EXPECT_THAT(topology.warnings[0], HasSubstr("(and 2 more like it)"));
}

INSTANTIATE_TEST_SUITE_P(All, AbsurdFiles, testing::ValuesIn(kAbsurdities));

// A tree of four cores with FILES changed has LLCS; how its one warning begins, "": it has none.
TEST(AbsurdTree, OfFourCores) {
    const std::string siblings = "/topology/thread_siblings", map = "/cache/index3/shared_cpu_map";
    using Texts = std::vector<std::pair<std::string, std::string>>;
    const struct {
        Texts files;
        std::vector<std::string> llcs;
        const char* warning = nullptr;  // null: not compared
    } rows[] = {
        {{{"cpu/cpu1" + siblings, ""}, {"cpu/cpu2" + map, ""}, {"node/online", ""}}, {"0-1,3", "2"}},
        {{{"cpu/online", "0-65535\n"}}, {"0-3"}, "CPUs 4-65535 have no folder"},
        // Folders of no CPU.
        {{{"cpu/cpu65536/x", ""},
          {"cpu/cpu4294967295/x", ""},
          {"cpu/cpu99999999999999999999/x", ""},
          {"cpu/cpu-1/x", ""},
          {"cpu/cpu1x/x", ""},
          {"cpu/cpufreq/x", ""},
          {"node/node4294967295/x", ""},
          {"node/nodes/x", ""}},
         {"0-3"},
         ""},
        // The lists differ from the masks, which are believed.
        {{{"cpu/cpu0/cache/index3/shared_cpu_list", "0\n"}, {"cpu/cpu1/cache/index3/shared_cpu_list", "0\n"}},
         {"0-3"}},
        // Some kernels print a NUL.
        {{{"cpu/cpu0" + siblings, std::string("1\n\0", 3)}, {"cpu/cpu0" + map, std::string("f\n\0", 3)}},
         {"0-3"},
         ""},
    };
    for (const auto& row : rows) {
        TempTree tree{cpu_tree({.cores = 4})};
        for (const auto& [file, text] : row.files) tree.write("sys/devices/system/" + file, text);
        const Topology topology = read(tree);
        EXPECT_EQ(llcs(topology), row.llcs) << row.files[0].first;
        EXPECT_EQ(topology.online.list(), "0-3");
        if (row.warning == nullptr) continue;
        EXPECT_EQ(topology.warnings.size(), *row.warning == '\0' ? 0U : 1U) << row.files[0].first;
        for (const std::string& warning : topology.warnings) EXPECT_THAT(warning, HasSubstr(row.warning));
    }
    TempTree tree{cpu_tree({.cores = 4})};
    tree.remove(kCpuFolder + "cpu2/topology");
    const Topology topology = read(tree);
    EXPECT_EQ(topology.cores.size(), 4U);
    EXPECT_THAT(llcs(topology), ElementsAre("0-3"));
    EXPECT_FALSE(topology.warnings.empty());
    tree.write(kCpuFolder + "online", "");
    EXPECT_THAT(why_not("fsroot:" + tree.root()), HasSubstr("no CPU is online"));
}

TEST(AbsurdTree, WithPackagesThatDisagree) {
    TempTree tree{cpu_tree({.sockets = 2, .cores = 2})};
    tree.write(kCpuFolder + "cpu1/topology/core_siblings", "f\n");
    tree.write(kCpuFolder + "cpu2/topology/core_siblings", "f\n");
    EXPECT_THAT(lists(read(tree).packages), ElementsAre("0-1", "2-3")) << "a CPU is in one";
    tree.write(kCpuFolder + "cpu0/topology/core_siblings", "garbage\n");
    tree.write(kCpuFolder + "cpu1/topology/core_siblings", "2\n");
    tree.write(kCpuFolder + "cpu2/topology/core_siblings", "3\n");
    const Topology topology = read(tree);
    EXPECT_THAT(lists(topology.packages), ElementsAre("1", "2-3")) << "CPU 0 is in none";
    EXPECT_THAT(topology.warnings, IsEmpty());
    EXPECT_THAT(topology.llc_unknown, HasSubstr("share a cache but are in several packages"));
}

TEST(AbsurdTree, WithEmptyFolders) {
    const TempTree folders{Dir(kCpuFolder, {Dir("cpu0"), Dir("cpu1"), test::File("online", "0-1\n")})};
    EXPECT_THAT(llcs(read(folders)), ElementsAre("0", "1"));
    TempTree tree{cpu_tree({.cores = 4, .nodes = 0})};
    EXPECT_THAT(read(tree).nodes, IsEmpty());
    EXPECT_EQ(read(tree).llcs[0].numa_node, std::nullopt);
    tree.add(Dir(kNode));
    EXPECT_THAT(llcs(read(tree)), ElementsAre("0-3"));
}

TEST(AbsurdTree, WithSiblingsThatDisagree) {
    TempTree tree{cpu_tree({.cores = 4})};
    tree.write(kCpuFolder + "cpu1/topology/thread_siblings", mask_of("0-1"));
    tree.write(kCpuFolder + "cpu2/topology/thread_siblings", mask_of("1-2"));
    const Topology topology = read(tree);
    CpuSet all;
    for (const auto& core : topology.cores) {
        EXPECT_FALSE(all.intersects(core));
        all |= core;
    }
    EXPECT_EQ(all, topology.online) << "still a partition";
    EXPECT_FALSE(topology.warnings.empty());
}

TEST(AbsurdTree, WithOverlappingNodes) {
    TempTree tree{cpu_tree({.sockets = 2, .cores = 2})};
    tree.write(kNode + "node1/cpumap", mask_of("1-3"));
    const Topology topology = read(tree);
    ASSERT_EQ(topology.nodes.size(), 2U);
    EXPECT_EQ(topology.nodes[0].cpus.list(), "0-1");
    EXPECT_EQ(topology.nodes[1].cpus.list(), "2-3");
    EXPECT_EQ(topology.warnings.size(), 1U);
}

std::string pods_unknown(const Topology& topology) {
    KnownCpus known;
    known.see(topology);
    KernelInfo kernel;
    kernel.scopes = {Scope::cpu, Scope::smt, Scope::cache, Scope::numa, Scope::system};
    return why_pods_unknown(known.topology(), known.cpus(), kernel, 8);
}

// Without cache files, one LLC of 24 cores would look like 24 LLCs of one core, which `auto` would join into
// `system`.
TEST(AbsurdTree, WithoutACacheThatCanBeReadHasUnknownPods) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> absurd = {
        {"cache/index3/shared_cpu_map", {"garbage\n", "", "0\n"}},
        {"cache/index3/level", {"garbage\n", "", "0\n", "6\n"}},
        {"cache/index3/type", {"garbage\n", "", "Unifiedd\n"}},
        {"topology/thread_siblings", {"garbage\n", ""}}};
    for (const auto& [file, texts] : absurd) {
        for (const std::string& text : texts) {
            TempTree tree{cpu_tree({.cores = 24})};
            for (unsigned cpu = 0; cpu < 24; cpu++)
                tree.write(fmt::format("{}cpu{}/{}", kCpuFolder, cpu, file), text);
            EXPECT_THAT(pods_unknown(read(tree)), HasSubstr("the topology is in doubt: CPU 0: "))
                << file << " " << text;
        }
    }
    TempTree tree{cpu_tree({.cores = 24})};
    tree.write(kNode + "node0/cpumap", "garbage\n");
    EXPECT_THAT(pods_unknown(read(tree)), HasSubstr("the topology is in doubt: "));
}

TEST(Topology, WithoutAnyCacheFilesDependsOnTheArchitecture) {
    EXPECT_THAT(pods_unknown(read(TempTree{cpu_tree({.cores = 24, .caches = false})})),
                HasSubstr("no cache of CPU 0 is known"));
    EXPECT_EQ(pods_unknown(read(TempTree{cpu_tree({.cores = 24, .caches = false, .arch = "x86_64"})})), "");
    EXPECT_EQ(pods_unknown(read(TempTree{cpu_tree({.cores = 24, .nodes = 0})})), "");
}

// ---- the CPUs known since boot

const Topology kEightCpus =
    test::machine({.sockets = 2, .cores = 2, .threads = 2});  // n and n+4 are siblings

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
    TempTree tree{cpu_tree({.cores = 4, .offline = "3"})};
    const auto look = [&] { return read_topology("live", tree.root()).value(); };
    EXPECT_TRUE(look().first.empty());
    Topology doubtful = look();
    doubtful.warnings = {"garbage"};
    ASSERT_TRUE(keep_first_cpus(Paths{tree.root()}, doubtful));
    EXPECT_TRUE(look().first.empty());
    ASSERT_TRUE(keep_first_cpus(Paths{tree.root()}, look()));
    tree.remove("sys");
    tree.add(cpu_tree({.cores = 4}));
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
