// SPDX-License-Identifier: LGPL-2.1-or-later
// The LLCs that the kernel makes, on trees of each architecture, and the plans for them.
#include "machine/llc_rule.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <random>

#include "fake_machine.h"
#include "plan/plan.h"
#include "plan/pods.h"
#include "read_tree.h"

namespace wq {
namespace {

using test::cpu_tree;
using test::CpuTree;
using test::kernel_612;
using test::TempTree;
using testing::HasSubstr;

// The kernel of a tree, with the options of Debian's arm64 kernel.
struct Booted {
    KernelInfo kernel;
    bool sched_cluster;
    bool sched_mc = true;
};
const Booted k612{kernel_612(), false};
const Booted k72{test::kernel_72(), true};
const Booted kNoMc{kernel_612(), false, false};

void boot(TempTree& tree, const Booted& on) {
    const auto line = [](const char* option, bool set) {
        return fmt::format(fmt::runtime(set ? "CONFIG_{}=y\n" : "# CONFIG_{} is not set\n"), option);
    };
    tree.write("proc/sys/kernel/osrelease", on.kernel.release + "\n");
    tree.write("boot/config-" + on.kernel.release,
               line("SMP", true) + line("SCHED_CLUSTER", on.sched_cluster) + line("SCHED_MC", on.sched_mc));
}

Topology read_live(const TempTree& tree) {
    return read_topology("live", tree.root()).value();
}

// The planned scope if it would be written, else "leave"; the reason if the pods are unknown.
std::string planned(const Topology& topology, const KernelInfo& kernel = kernel_612()) {
    const Policy policy = test::rule_for_all();
    const std::string unknown = why_pods_unknown(topology, topology.online, kernel, 8);
    const auto line =
        make_plan({topology, kernel, policy, {test::unbound(topology, kernel.default_scope())}, unknown, 8})
            .at(0);
    if (line.finding == Finding::pods_unknown) return line.reason;
    return line.finding == Finding::change ? std::string(name_of(*line.planned)) : "leave";
}

// "LLCs | plan".
std::string answer(const Topology& topology, const KernelInfo& kernel = kernel_612()) {
    return fmt::format("{} | {}", fmt::join(test::llcs(topology), " "), planned(topology, kernel));
}

// The same of MACHINE, an ARCH, with the kernel ON.
std::string answer(CpuTree machine, const char* arch, const Booted& on = k612) {
    machine.arch = arch;
    TempTree tree{cpu_tree(machine)};
    boot(tree, on);
    const Topology topology = read_live(tree);
    EXPECT_EQ(topology.warnings, std::vector<std::string>{});
    return answer(topology, on.kernel);
}

constexpr const char* kWhole = "0-15 | leave";
constexpr const char* kCut = "0-15 | smt";
constexpr const char* kHalves = "0-7 8-15 | leave";
constexpr const char* kPairs = "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15 | leave";
constexpr const char* kSingles = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 | leave";
constexpr const char* kSockets = "0 1 2 3 4 5 6 7 | system";  // of one CPU each

// The pods that these kernels made on these machines, observed in guests.
TEST(LlcOnArm64, IsThatOfTheKernel) {
    const struct {
        CpuTree machine;
        const char *on_612, *on_72;
    } rows[] = {
        // The firmware names no cache: the package, whatever the clusters are.
        {{.cores = 16, .clusters = 1, .made_up = true}, kCut, kWhole},
        {{.cores = 16, .clusters = 8, .made_up = true}, kCut, kWhole},
        {{.sockets = 2, .cores = 8, .nodes = 0, .clusters = 1, .made_up = true}, kHalves, kHalves},
        {{.sockets = 2, .cores = 8, .clusters = 1, .made_up = true}, kHalves, kHalves},
        {{.sockets = 2, .cores = 4, .nodes = 0, .clusters = 1, .made_up = true},
         "0-3 4-7 | leave",
         "0-3 4-7 | leave"},
        {{.cores = 8, .threads = 2, .neighbours = true, .clusters = 1, .made_up = true}, kWhole, kWhole},
        {{.cores = 72, .clusters = 1, .made_up = true}, "0-71 | smt", "0-71 | leave"},
        {{.sockets = 8, .cores = 1, .nodes = 0, .clusters = 1, .made_up = true}, kSockets, kSockets},
        // L3 caches, which 7.2 widens to the cluster.
        {{.cores = 16, .clusters = 1}, kCut, kWhole},
        {{.cores = 16, .clusters = 8}, kCut, kWhole},
        {{.cores = 16, .llcs = 2, .clusters = 1}, kHalves, kWhole},
        {{.cores = 16, .llcs = 2, .clusters = 2}, kHalves, kHalves},
        // L2 caches. With 7.2 the third is like Ampere Altra.
        {{.cores = 16, .clusters = 8, .l2s = 8, .l3 = false}, kPairs, kPairs},
        {{.cores = 16, .clusters = 1, .l3 = false}, kSingles, kWhole},
        {{.cores = 16, .clusters = 8, .l3 = false}, kSingles, kPairs},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(&row - rows);
        EXPECT_EQ(answer(row.machine, "aarch64", k612), row.on_612);
        EXPECT_EQ(answer(row.machine, "aarch64", k72), row.on_72);
    }
}

TEST(LlcElsewhere, IsThatOfTheKernel) {
    const struct {
        const char* arch;
        CpuTree machine;
        const char* answer;
        const Booted& on = k612;
    } rows[] = {
        {"riscv64", {.sockets = 2, .cores = 4, .nodes = 0, .caches = false}, "0-3 4-7 | leave"},
        {"riscv64",
         {.sockets = 2, .cores = 4, .nodes = 0, .caches = false},
         "0 1 2 3 4 5 6 7 | leave",
         kNoMc},
        {"riscv64", {.cores = 4, .l2s = 2, .l3 = false}, "0-1 2-3 | leave"},
        // x86: the L3 cut at the node; without an L3 the L2 of Intel, the package of AMD.
        {"x86_64",
         {.cores = 6, .threads = 2, .nodes = 2, .vendor = "GenuineIntel"},
         "0-2,6-8 3-5,9-11 | leave"},
        {"x86_64", {.sockets = 2, .cores = 8, .nodes = 0, .l3 = false, .vendor = "GenuineIntel"}, kSingles},
        {"x86_64", {.sockets = 2, .cores = 8, .nodes = 0, .l3 = false, .vendor = "AuthenticAMD"}, kHalves},
        {"x86_64", {.sockets = 2, .cores = 8, .nodes = 0, .l3 = false, .vendor = "HygonGenuine"}, kHalves},
        // POWER: the L2, whatever the L3 is.
        {"ppc64le", {.cores = 4, .threads = 4, .neighbours = true}, "0-3 4-7 8-11 12-15 | leave"},
        {"ppc64le", {.cores = 4, .threads = 4, .neighbours = true, .l2s = 2}, kHalves},
        {"ppc64le",
         {.cores = 4, .threads = 4, .caches = false, .neighbours = true, .l2s = 2},
         "0-3 4-7 8-11 12-15 | leave"},
        {"s390x", {.sockets = 2, .cores = 8, .llcs = 8, .nodes = 0}, kHalves},
        {"s390x", {.sockets = 2, .cores = 8, .llcs = 8, .nodes = 0, .caches = false}, kHalves},
        {"loongarch64", {.cores = 1}, "0 | leave"},
        // A tree that does not name its architecture: the outermost cache.
        {"", {.sockets = 2, .cores = 8}, kHalves},
        {"", {.sockets = 8, .cores = 1, .nodes = 0, .caches = false}, kSockets},
    };
    for (const auto& row : rows)
        EXPECT_EQ(answer(row.machine, row.arch, row.on), row.answer) << &row - rows << row.arch;
}

// A first-level cache that is known only from registers is private, whatever the next level is.
TEST(LlcOnArm64, DoesNotTakeAFirstLevelForTheLast) {
    TempTree tree{cpu_tree({.cores = 4, .clusters = 1, .made_up = true, .arch = "aarch64"})};
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree.remove(fmt::format("sys/devices/system/cpu/cpu{}/cache/index2", cpu));
    EXPECT_THAT(test::llcs(read_live(tree)), testing::ElementsAre("0-3"));
}

TEST(LlcInDoubt, WhereTheFilesAreSilent) {
    const struct {
        CpuTree machine;
        const char* why;
    } rows[] = {
        {{.cores = 16, .clusters = 8, .l3 = false, .arch = "aarch64"},
         "pods unknown: whether the kernel has CONFIG_SCHED_MC is not known"},
        {{.sockets = 2, .cores = 8, .nodes = 0, .l3 = false, .arch = "x86_64"}, "there is no L3"},
        {{.cores = 4, .arch = "loongarch64"}, "on loongarch64 is not known here"},
        {{.sockets = 2, .cores = 8, .caches = false},
         "pods unknown: no cache of CPU 0 is known, and the architecture is unknown"},
    };
    for (const auto& row : rows)
        EXPECT_THAT(planned(read_live(TempTree{cpu_tree(row.machine)})), HasSubstr(row.why));
    TempTree alone{cpu_tree({.cores = 16, .clusters = 16, .l3 = false, .arch = "aarch64"})};
    EXPECT_EQ(planned(read_live(alone)), "leave") << "the level makes no difference";
}

// ---- contradictory files

std::string unknown(const TempTree& tree) {
    const std::string plan = planned(read_live(tree));
    EXPECT_THAT(plan, HasSubstr("pods unknown: "));
    return plan;
}

TEST(LlcInDoubt, WhereFilesContradictEachOther) {
    const struct {
        CpuTree machine;
        std::vector<const char*> shared;
        const char* file;
        const char* why;
    } rows[] = {
        // CPU 0 does not share the L3 of its neighbours, but the L2 of CPU 1.
        {{.cores = 24, .l2s = 12, .arch = "x86_64", .vendor = "AuthenticAMD"},
         {"1-8", "9-16", "0,17-23"},
         "cache/index3/shared_cpu_map",
         "its caches overlap"},
        {{.sockets = 2, .cores = 4, .nodes = 0, .arch = "x86_64"},
         {"0-7"},
         "cache/index3/shared_cpu_map",
         "CPUs 0-7 share a cache but are in several packages"},
        {{.sockets = 2, .cores = 4, .nodes = 0},
         {"0-7"},
         "cache/index3/shared_cpu_map",
         "CPUs 0-7 share a cache but are in several packages"},
        // A big core of POWER.
        {{.cores = 1, .threads = 8, .neighbours = true, .arch = "ppc64le"},
         {"0,2,4,6", "1,3,5,7"},
         "cache/index2/shared_cpu_map",
         "are one core, but do not share its L2"},
        {{.cores = 4, .llcs = 2, .clusters = 4, .arch = "aarch64"},
         {"1-2"},
         "topology/cluster_cpus",
         "overlap"},
    };
    for (const auto& row : rows) {
        TempTree tree{cpu_tree(row.machine)};
        boot(tree, k72);
        for (const char* list : row.shared) test::share(tree, list, row.file);
        EXPECT_THAT(unknown(tree), HasSubstr(row.why));
    }
}

TEST(LlcInDoubt, WhereAClusterIsOfTwoNodes) {
    TempTree tree{cpu_tree({.cores = 8, .nodes = 2, .clusters = 1, .arch = "aarch64"})};
    boot(tree, k72);
    EXPECT_THAT(unknown(tree), HasSubstr("CPUs 0-7 are one cluster, but of several NUMA nodes"));
    boot(tree, {k72.kernel, false});
    EXPECT_EQ(planned(read_live(tree)), "leave") << "clusters are of no account";
}

TEST(LlcInDoubt, WhereAPackageAndANodeOverlap) {
    TempTree tree{cpu_tree({.sockets = 3, .cores = 4, .nodes = 0, .caches = false, .arch = "aarch64"})};
    boot(tree, k612);
    tree.write("sys/devices/system/node/node0/cpumap", "03f\n");
    tree.write("sys/devices/system/node/node1/cpumap", "fc0\n");
    EXPECT_THAT(unknown(tree), HasSubstr("overlap"));
}

TEST(LlcInDoubt, WhereSiblingsDisagree) {
    for (const char* file :
         {"topology/core_siblings", "topology/cluster_cpus", "cache/index3/shared_cpu_map"}) {
        TempTree tree{cpu_tree({.cores = 8, .clusters = 1, .arch = "aarch64"})};
        tree.write(std::string("sys/devices/system/cpu/cpu3/") + file, "0f\n");
        EXPECT_THAT(unknown(tree), HasSubstr("CPU 3: its "));
    }
}

TEST(LlcInDoubt, WhereThePackageIsNotTold) {
    TempTree tree{cpu_tree({.cores = 8, .caches = false, .arch = "x86_64"})};
    tree.write("sys/devices/system/cpu/cpu0/topology/core_siblings", "garbage\n");
    EXPECT_EQ(planned(read_live(tree)), "leave") << "its siblings know";
    for (const char* file : {"core_siblings", "core_siblings_list"})
        for (unsigned cpu = 1; cpu < 8; cpu++)
            tree.remove(fmt::format("sys/devices/system/cpu/cpu{}/topology/{}", cpu, file));
    EXPECT_THAT(unknown(tree), HasSubstr("the package of CPU 0 is not known"));
}

// ---- scheduling levels that the kernel was built with

TEST(SchedLevels, AreReadFromTheConfiguration) {
    TempTree tree{test::File("proc/sys/kernel/osrelease", "7.2.1\n")};
    const auto found = [&] { return read_sched_levels(Paths{tree.root()}); };
    EXPECT_EQ(found(), SchedLevels());
    tree.write("lib/modules/7.2.1/config", "CONFIG_SMP=y\nCONFIG_SCHED_CLUSTER=y\n");
    EXPECT_EQ(found(), (SchedLevels{true, false}));
    tree.write("boot/config-7.2.1", "garbage\n");
    EXPECT_EQ(found(), (SchedLevels{true, false})) << "no configuration";
    tree.write("boot/config-7.2.1", "CONFIG_SCHED_MC=y\nCONFIG_SMP=y\n# CONFIG_SCHED_CLUSTER is not set\n");
    EXPECT_EQ(found(), (SchedLevels{false, true}));
    tree.write("proc/sys/kernel/osrelease", "../..\n");
    EXPECT_EQ(found(), SchedLevels());
}

// ---- random machines, consistent or not

// Groups of up to eight adjacent CPUs. MAY_MISS: some CPUs may be in no group.
std::vector<CpuSet> some_groups(std::mt19937& random, unsigned cpus, bool may_miss) {
    std::vector<CpuSet> groups;
    for (unsigned first = 0; first < cpus;) {
        const unsigned size = 1U << (random() % 4);
        const unsigned last = std::min(first + size, cpus) - 1;
        if (!may_miss || random() % 8 != 0) groups.push_back(CpuSet::range(first, last));
        first = last + 1;
    }
    return groups;
}

const CpuSet* group_of(const std::vector<CpuSet>& groups, unsigned cpu) {
    for (const CpuSet& group : groups)
        if (group.has(cpu)) return &group;
    return nullptr;
}

const CpuSet* cache_of(const LlcFacts& facts, unsigned level, unsigned cpu) {
    for (const Cache& cache : facts.caches)
        if (cache.level == level && cache.cpus.has(cpu)) return &cache.cpus;
    return nullptr;
}

// Whether the spans are disjoint groups, as topology_span_sane() requires.
bool are_groups(const std::vector<CpuSet>& spans) {
    for (const CpuSet& a : spans)
        for (const CpuSet& b : spans)
            if (a.intersects(b) && a != b) return false;
    return true;
}

// For each CPU, cpu_coregroup_mask() and cpu_clustergroup_mask() joined like in build_sched_domain(). Empty
// if topology_span_sane() would refuse the spans or they are not groups.
std::optional<std::vector<CpuSet>> as_arm64_does(const Topology& t, const LlcFacts& facts,
                                                 const SchedLevels& levels) {
    std::vector<CpuSet> spans;
    for (const unsigned cpu : t.online.cpus()) {
        std::vector<CpuSet> nodes;
        for (const NumaNode& node : t.nodes) nodes.push_back(node.cpus);
        const CpuSet alone{cpu};
        const CpuSet* node = group_of(nodes, cpu);
        const CpuSet& package = *group_of(t.packages, cpu);
        const CpuSet& smt = *group_of(t.cores, cpu);
        const CpuSet* named = group_of(facts.clusters, cpu);
        const CpuSet& cluster = named != nullptr ? *named : alone;
        CpuSet mc = node != nullptr ? *node : t.online;
        if (mc.contains(package)) mc = package;
        const CpuSet* l3 = cache_of(facts, 3, cpu);
        const CpuSet* cache = l3 != nullptr ? l3 : cache_of(facts, 2, cpu);
        if (cache != nullptr && mc.contains(*cache)) mc = *cache;
        CpuSet cls = smt;
        if (levels.clusters == true && cluster.contains(mc))
            mc = cluster;
        else if (levels.clusters == true)
            cls = cluster;
        spans.push_back(levels.mc == true ? mc | cls | smt : cls | smt);
    }
    return are_groups(spans) ? std::optional(spans) : std::nullopt;
}

// The group of CPUs that have the same llc_id in the kernel.
const CpuSet* llc_id(const Topology& t, const LlcFacts& facts, unsigned cpu) {
    if (const CpuSet* l3 = cache_of(facts, 3, cpu)) return l3;
    const CpuSet* l2 = cache_of(facts, 2, cpu);
    return l2 != nullptr && facts.vendor != "AuthenticAMD" ? l2 : group_of(t.packages, cpu);
}

// Applies match_llc() to all pairs of CPUs.
std::optional<std::vector<CpuSet>> as_x86_does(const Topology& t, const LlcFacts& facts) {
    std::vector<CpuSet> nodes;
    for (const NumaNode& node : t.nodes) nodes.push_back(node.cpus);
    const bool one_each = std::ranges::all_of(t.packages, [](const CpuSet& p) { return p.count() == 1; });
    std::vector<CpuSet> spans;
    for (const unsigned cpu : t.online.cpus()) {
        CpuSet span = *group_of(t.cores, cpu);
        for (const unsigned other : t.online.cpus()) {
            const bool same_id = llc_id(t, facts, cpu) == llc_id(t, facts, other);
            if (!one_each && same_id && group_of(nodes, cpu) == group_of(nodes, other)) span.add(other);
        }
        spans.push_back(span);
    }
    return are_groups(spans) ? std::optional(spans) : std::nullopt;
}

// A random machine with up to 24 CPUs.
std::pair<Topology, LlcFacts> some_machine(std::mt19937& random, const char* arch) {
    const unsigned cpus = 1 + random() % 24;
    Topology t;
    t.online = t.present = t.possible = CpuSet::range(0, cpus - 1);
    const unsigned threads = random() % 3 == 0 ? 2 : 1;
    for (unsigned cpu = 0; cpu < cpus; cpu += threads)
        t.cores.push_back(CpuSet::range(cpu, std::min(cpu + threads, cpus) - 1));
    t.packages = some_groups(random, cpus, false);
    unsigned id = 0;
    if (random() % 2 == 0)
        for (CpuSet& node : some_groups(random, cpus, false)) t.nodes.push_back({id++, node});
    LlcFacts facts;
    facts.arch = arch;
    for (const unsigned level : {2U, 3U})
        if (random() % 3 != 0)
            for (CpuSet& cache : some_groups(random, cpus, true)) facts.caches.push_back({level, cache});
    static constexpr std::array kVendors = {"", "GenuineIntel", "AuthenticAMD"};
    facts.vendor = kVendors[random() % kVendors.size()];
    facts.clusters = some_groups(random, cpus, true);
    return {t, facts};
}

// Expects that the LLCs of T are those of KERNEL, and that no plan crosses them, except if each package has
// only one core.
void expect_right(const Topology& t, const std::optional<std::vector<CpuSet>>& kernel) {
    ASSERT_TRUE(kernel);
    for (const Llc& llc : t.llcs)
        for (const unsigned cpu : llc.cpus.cpus()) ASSERT_EQ(llc.cpus, (*kernel)[cpu]);
    const std::string plan = planned(t, kernel_612());
    if (plan != "system" && plan != "numa") return;
    const CoreIndex cores(t);
    const bool sockets =
        std::ranges::all_of(t.packages, [&](const CpuSet& package) { return cores.cores_in(package) == 1; });
    for (const CpuSet& pod : pods_of(plan == "numa" ? Scope::numa : Scope::system, t, 8))
        EXPECT_TRUE(sockets || (*kernel)[pod.first()].contains(pod));
}

TEST(LlcProperty, NoPlanCrossesWhatTheKernelMakes) {
    std::mt19937 random(18);
    std::map<std::string, unsigned> known;
    for (int round = 0; round < 6000; round++) {
        const bool arm = round % 2 == 0;
        auto [t, facts] = some_machine(random, arm ? "aarch64" : "x86_64");
        const SchedLevels levels{random() % 2 == 0, random() % 4 != 0};
        facts.sched_levels = [&] { return levels; };
        set_llcs(t, facts);

        CpuSet seen;
        for (const Llc& llc : t.llcs) {
            ASSERT_FALSE(llc.cpus.empty() || llc.cpus.intersects(seen)) << "disjoint";
            seen |= llc.cpus;
        }
        ASSERT_EQ(seen, t.online);
        if (!t.llc_unknown.empty()) continue;
        known[facts.arch]++;
        SCOPED_TRACE(fmt::format("round {}", round));
        ASSERT_NO_FATAL_FAILURE(
            expect_right(t, arm ? as_arm64_does(t, facts, levels) : as_x86_does(t, facts)));
    }
    EXPECT_GT(known["aarch64"], 300U) << "some of them make sense";
    EXPECT_GT(known["x86_64"], 300U);
}

}  // namespace
}  // namespace wq
