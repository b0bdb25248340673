// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/plan.h"

#include <gmock/gmock.h>

#include <tuple>

#include "ctl/machine.h"
#include "fake_machine.h"
#include "machine/udev.h"
#include "plan/pods.h"

namespace wq {
namespace {

using test::default_target;
using test::fixed;
using test::kernel_612;
using test::kernel_72;
using test::leave;
using test::machine;
using test::rule_for_all;
using test::unbound;
using testing::ElementsAre;
using testing::EndsWith;

const Topology kOneLlc = machine({.cores = 12, .threads = 2});
const Topology kTwoLlcs = machine({.sockets = 2, .cores = 4, .threads = 2});
const Topology kFourLlcs = machine({.sockets = 4, .cores = 2, .one_node = true});

// The plan line of a single TARGET.
PlanLine plan(const Topology& topology, const KernelInfo& kernel, const Workqueue& target,
              const Policy& policy = rule_for_all(), unsigned size = 8) {
    return make_plan({topology, kernel, policy, {target}, "", size}).at(0);
}

// "change set smt": why, what, and the planned scope.
std::string text_of(const PlanLine& line) {
    static constexpr const char* kFindings[] = {"untouchable",  "unmanaged",   "leave",    "followers",
                                                "pods_unknown", "unsupported", "in_place", "change"};
    return kFindings[static_cast<unsigned>(line.finding)] + (" " + std::string(name_of(line.action))) +
           (line.planned ? " " + std::string(name_of(*line.planned)) : "");
}

// "system 1x8..8": scope, number of pools, cores of the smallest and of the largest pool.
std::vector<std::string> candidates_of(const PlanLine& line) {
    std::vector<std::string> out;
    for (const Candidate& c : line.candidates)
        out.push_back(std::string(name_of(c.scope)) + " " + std::to_string(c.pools) + "x" +
                      std::to_string(c.min_cores) + ".." + std::to_string(c.max_cores));
    return out;
}

constexpr const char* kStays = "in_place none cache";
constexpr const char* kShards = "in_place none cache_shard";
constexpr const char* kSmt = "change set smt";
constexpr const char* kSystem = "change set system";

// ---- the rule

Topology uneven() {  // 12 cores and 4
    Topology out = test::without(machine({.sockets = 2, .cores = 12}), "16-23");
    out.present = out.possible = out.online;
    return out;
}

Topology one_cpu_sockets(unsigned sockets, unsigned threads = 1, bool one_node = false) {
    return machine({.sockets = sockets, .cores = 1, .threads = threads, .one_node = one_node});
}

Topology changed(Topology topology, void (*change)(Topology&)) {
    change(topology);
    return topology;
}

TEST(Plan, OfAWorkqueueOnTheDefaultScopeOfTheKernel) {
    using Texts = std::vector<std::string>;
    struct Row {
        Topology topology;
        const char *on_612, *on_72 = "";  // "": not asked
        const char* reason = "";          // of the first
        Texts candidates = {};            // of the first
        unsigned size = 8;
    };
    const Topology eight = one_cpu_sockets(8, 1, true);
    const Row rows[] = {
        // A large LLC is cut to its cores where there are no shards.
        {kOneLlc,
         kSmt,
         kShards,
         "`smt`: pools of 1 core; `system` (12 cores) exceeds the limit of 11",
         {"system 1x12..12", "smt 12x1..1", "cpu 24x1..1"}},
        {kTwoLlcs, kStays, kShards, "", {"system 1x8..8", "numa 2x4..4", "smt 8x1..1", "cpu 16x1..1"}},
        {machine({.cores = 1}), kStays, "", "", {"system 1x1..1"}},
        {machine({.cores = 4}), kStays, kShards, "", {"system 1x4..4", "smt 4x1..1"}},
        // round(11 / 8) is one shard, round(12 / 8) two.
        {machine({.cores = 11}), kStays},
        {machine({.cores = 12}), kSmt},
        {machine({.cores = 5}), kStays, "", "", {}, 4},
        {machine({.cores = 6}), kSmt, "", "", {}, 4},
        {uneven(), kSmt},  // the largest pod counts
        // system would be one shard of 8 cores, but of four LLCs.
        {kFourLlcs, kStays, "", "in place: `cache`: pools of 2 cores; `system` crosses LLCs"},
        // Sockets of one CPU are widened, also beside isolated CPUs.
        {eight,
         kSystem,
         kSystem,
         "no LLC grouping; `system` gives pools of 8 cores, shard size 8",
         {"system 1x8..8", "cache 8x1..1"}},
        {one_cpu_sockets(8), kSystem, kSystem, "no LLC grouping", {"system 1x8..8", "numa 8x1..1"}},
        {changed(eight, [](auto& t) { t.llcs.resize(6); }), kSystem},
        // To the finest that joins cores: two nodes of 8.
        {changed(one_cpu_sockets(16, 1, true),
                 [](auto& t) {
                     t.nodes = {{0, CpuSet::range(0, 7)}, {1, CpuSet::range(8, 15)}};
                 }),
         "change set numa"},
        // Only where that is nearer to the size than a core is: 2 is, 16 (|log2(16/8)| = 1 < 3), 64 (3 < 3)
        // not.
        {one_cpu_sockets(2), kSystem},
        {one_cpu_sockets(16), kSystem},
        {one_cpu_sockets(63), kSystem},
        {one_cpu_sockets(64), kStays, "", "`system` (64 cores) exceeds the limit of 63 for one-core sockets"},
        {one_cpu_sockets(8), kStays, "", "", {}, 1},
        {one_cpu_sockets(15), kSystem, "", "", {}, 4},
        {one_cpu_sockets(16), kStays, "", "", {}, 4},
        {one_cpu_sockets(8, 2), kSystem},
        {one_cpu_sockets(8, 4), kStays},  // a POWER or a ThunderX2, whose topology is real
        {changed(eight,
                 [](auto& t) {  // one LLC with two cores
                     t.llcs[6].cpus |= t.llcs[7].cpus;
                     t.llcs.pop_back();
                 }),
         kStays},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(&row - rows);
        for (const auto& [kernel, text] : {std::pair{kernel_612(), row.on_612}, {kernel_72(), row.on_72}}) {
            if (*text == '\0') continue;
            const PlanLine line = plan(row.topology, kernel, unbound(row.topology, kernel.default_scope()),
                                       rule_for_all(), row.size);
            EXPECT_EQ(text_of(line), text) << line.reason;
            if (text != row.on_612) continue;
            EXPECT_THAT(line.reason, testing::HasSubstr(row.reason));
            if (!row.candidates.empty()) {
                EXPECT_EQ(candidates_of(line), row.candidates);
            }
        }
    }
}

TEST(Plan, DoesNotWidenCoresOfOnePackage) {
    Topology private_caches = machine({.cores = 16, .one_node = true});
    private_caches.llcs.clear();
    for (const CpuSet& core : private_caches.cores) private_caches.llcs.push_back({core, 0});
    const Workqueue target = unbound(private_caches, Scope::cache);
    EXPECT_EQ(text_of(plan(private_caches, kernel_612(), target)), kStays);
    private_caches.packages.clear();  // packages are not known
    EXPECT_EQ(text_of(plan(private_caches, kernel_612(), target)), kStays);
}

TEST(Plan, NamesEqualPodsByTheCoarsest) {
    const PlanLine line = plan(kTwoLlcs, kernel_72(), unbound(kTwoLlcs, Scope::cache_shard));
    ASSERT_EQ(line.candidates.size(), 4U);
    EXPECT_THAT(line.candidates[1].same, ElementsAre(Scope::cache_shard, Scope::cache, Scope::numa));
    EXPECT_THAT(line.candidates[2].same, ElementsAre(Scope::smt));
    EXPECT_THAT(candidates_of(plan(kOneLlc, kernel_72(), unbound(kOneLlc, Scope::cache_shard))),
                ElementsAre("system 1x12..12", "cache_shard 2x6..6", "smt 12x1..1", "cpu 24x1..1"));
}

// ---- targets and rules

TEST(Plan, IsForTheCpusOfTheWorkqueueOnly) {
    const Topology sockets = one_cpu_sockets(8);
    const auto on = [](const Topology& topology, const char* cpus) {
        Workqueue out = unbound(topology, Scope::cache);
        out.effective = *CpuSet::parse_list(cpus);
        return plan(topology, kernel_612(), out);
    };
    EXPECT_EQ(text_of(on(kOneLlc, "0-3,12-15")), kStays) << "4 cores are one shard";
    EXPECT_THAT(candidates_of(on(kOneLlc, "0-3,12-15")),
                ElementsAre("system 1x4..4", "smt 4x1..1", "cpu 8x1..1"));
    EXPECT_THAT(candidates_of(on(kOneLlc, "5")), ElementsAre("system 1x1..1"));
    EXPECT_EQ(text_of(on(sockets, "3")), kStays) << "one CPU is not widened";
    EXPECT_EQ(text_of(on(sockets, "3-4")), kSystem);
}

TEST(Plan, FollowsTheRule) {
    const Workqueue usual = unbound(kOneLlc, Scope::cache);
    const auto as = [&](void (*change)(Workqueue&)) {
        Workqueue out = usual;
        change(out);
        return out;
    };
    Policy others = rule_for_all();
    others.rules[0].match = {"nvme*"};
    const struct {
        const char* plan;
        const char* reason;
        Policy policy;
        Workqueue target = unbound(kOneLlc, Scope::cache);
        KernelInfo kernel = kernel_612();
    } rows[] = {
        {"change set cpu", "the rule names `cpu`", rule_for_all(fixed(Scope::cpu))},  // it splits siblings
        {kStays, "in place: `cache` makes the same pods; the rule names `system`",
         rule_for_all(fixed(Scope::system))},
        {"unsupported skip cache", "unsupported: this kernel has no cache_shard",
         rule_for_all(fixed(Scope::cache_shard))},
        {"leave skip cache", "", rule_for_all(leave())},
        {"unmanaged skip cache", "no rule matches", others},
        {"change set cache_shard", "", rule_for_all(), usual, kernel_72()},
        {"pods_unknown skip", "those of 'pony'", rule_for_all(fixed(Scope::smt)), as([](auto& w) {
             w.scope = {"pony", std::nullopt};
         })},
        {"untouchable skip", "ordered", rule_for_all(fixed(Scope::smt)),
         as([](auto& w) { w.untouchable = "ordered"; })},
        {"pods_unknown skip cache", "none of its CPUs is online", rule_for_all(),
         as([](auto& w) { w.effective = CpuSet::range(64, 71); })},
        {"pods_unknown skip cache", "none of its CPUs is online", rule_for_all(fixed(Scope::smt)),
         as([](auto& w) { w.effective = CpuSet::range(64, 71); })},
    };
    for (const auto& row : rows) {
        const PlanLine line = plan(kOneLlc, row.kernel, row.target, row.policy);
        EXPECT_EQ(text_of(line), row.plan) << line.reason;
        EXPECT_THAT(line.reason, testing::HasSubstr(row.reason));
        const bool none = line.finding == Finding::unmanaged || line.finding == Finding::untouchable;
        EXPECT_EQ(line.rule ? line.rule->text() : "", none ? "" : "rules.toml:1");
        EXPECT_EQ(line.candidates.empty(), none || line.finding == Finding::pods_unknown);
    }
}

TEST(Plan, IsInTheOrderOfTheTargetsEachWithItsOwnMask) {
    const Policy policy = rule_for_all();
    const KernelInfo kernel = kernel_612();
    Workqueue few = unbound(kOneLlc, Scope::cache, "few");
    few.effective = *CpuSet::parse_list("0-3");
    std::vector<std::string> texts;
    const std::vector<Workqueue> targets{few, default_target(kOneLlc, Scope::cache),
                                         unbound(kOneLlc, Scope::cache, "all")};
    for (const PlanLine& line : make_plan({kOneLlc, kernel, policy, targets, "", 8}))
        texts.push_back(line.target.name + " " + text_of(line));
    EXPECT_THAT(texts, ElementsAre("few in_place none cache", testing::StartsWith("@default "),
                                   "all change set smt"));
}

// ---- @default and its followers

constexpr ScopeWish::Kind kPlan = ScopeWish::Kind::plan;

Policy managed(const ScopeWish& wish = {.kind = kPlan}, const ScopeWish& rules = {.kind = kPlan}) {
    Policy out = rule_for_all(rules);
    out.default_scope = {true, wish, {"rules.toml", 20}};
    return out;
}

// The lines of @default and of a workqueue on `default`, on a machine where `auto` means smt.
std::tuple<PlanLine, PlanLine> plan_both(const Policy& policy, const KernelInfo& kernel = kernel_612(),
                                         const std::string& unknown = "") {
    // The follower comes first: the order of the list must not matter.
    const std::vector<Workqueue> targets{unbound(kOneLlc, Scope::cache),
                                         default_target(kOneLlc, Scope::cache)};
    const auto lines = make_plan({kOneLlc, kernel, policy, targets, unknown, 8});
    return {lines.at(1), lines.at(0)};
}

TEST(PlanDefault, MovesItsFollowersIfItIsManaged) {
    auto [parameter, follower] = plan_both(rule_for_all());
    EXPECT_EQ(text_of(parameter), "unmanaged skip cache");
    EXPECT_EQ(text_of(follower), kSmt) << "which then writes the workqueue itself";
    std::tie(parameter, follower) = plan_both(managed());
    EXPECT_EQ(text_of(parameter), kSmt);
    EXPECT_EQ(parameter.rule->text(), "rules.toml:20");
    EXPECT_EQ(text_of(follower), "in_place none smt");
    EXPECT_EQ(follower.reason, "follows @default to smt");
    std::tie(parameter, follower) = plan_both(managed({.kind = kPlan}, fixed(Scope::cache)));
    EXPECT_EQ(text_of(parameter), kSmt);
    EXPECT_EQ(text_of(follower), "change set cache") << "to stay where it is";
    EXPECT_EQ(text_of(plan(kOneLlc, kernel_72(), default_target(kOneLlc, Scope::cache_shard), managed())),
              kShards);
}

// A follower that must be left keeps @default where it is, unless somebody sets @default himself.
TEST(PlanDefault, StaysWhileAFollowerMustBeLeft) {
    const Workqueue plain = unbound(kOneLlc, Scope::cache, "kcryptd-254:0-1");
    const auto with = [&](const char* untouchable) {
        Workqueue out = plain;
        out.untouchable = untouchable;
        return out;
    };
    const auto own = [&] {
        Workqueue out = plain;
        out.scope.word = "cache";
        return out;
    };
    struct Case {
        const char* what;
        ScopeWish rule;
        Workqueue follower;
        std::set<std::string> swap, reverted;
        bool moved, stays;
    };
    const Case cases[] = {{"left by a rule", leave(), plain, {}, {}, false, true},
                          {"left, with a scope of its own", leave(), own(), {}, {}, false, false},
                          {"opted out", {}, with(kOptedOutByUdev), {}, {}, false, true},
                          {"not seen by udev", {}, with(kNotProcessedByUdev), {}, {}, false, true},
                          {"not seen by udev, moved", {}, with(kNotProcessedByUdev), {}, {}, true, false},
                          {"ordered", {}, with("ordered"), {}, {}, false, false},
                          {"swap", {}, plain, {"254:0"}, {}, false, true},
                          {"other swap", {}, plain, {"254:1"}, {}, false, false},
                          {"reverted", {}, plain, {}, {plain.name}, false, true},
                          {"planned", {}, plain, {}, {}, false, false}};
    for (const Case& c : cases)
        for (const ScopeWish& wish : {ScopeWish{}, ScopeWish{.kind = kPlan}, fixed(Scope::smt)}) {
            const Policy policy = managed(wish, c.rule);
            const KernelInfo kernel = kernel_612();
            const std::vector<Workqueue> targets{default_target(kOneLlc, Scope::cache), c.follower};
            PlanInput input{kOneLlc, kernel, policy, targets, "", 8, {.swap = c.swap}, c.reverted, c.moved};
            const PlanLine line = make_plan(input).at(0);
            const bool auto_stays = c.stays && !wish.sets_first();
            EXPECT_EQ(line.finding, auto_stays ? Finding::followers : Finding::change) << c.what;
            EXPECT_EQ(line.action, auto_stays          ? Action::skip
                                   : wish.sets_first() ? Action::set
                                                       : Action::compare)
                << c.what;
            EXPECT_EQ(line.reason.find("kcryptd-254:0-1") != std::string::npos, c.stays) << line.reason;
        }
}

TEST(PlanDefault, IsLeftToTheAdministratorOfTheCommandLine) {
    KernelInfo kernel = kernel_612();
    kernel.default_on_cmdline = true;
    const auto actions = [&](const Policy& policy) {
        const auto [parameter, follower] = plan_both(policy, kernel);
        for (const PlanLine& line : {parameter, follower})
            EXPECT_EQ(line.finding == Finding::leave,
                      line.reason.find("kernel command line") != std::string::npos);
        return text_of(parameter) + ", " + text_of(follower);
    };
    EXPECT_EQ(actions(managed({}, {})), "leave skip cache, leave skip cache");
    EXPECT_THAT(actions(managed({}, {.kind = kPlan})), EndsWith(kSmt));
    EXPECT_THAT(actions(managed({}, fixed(Scope::smt))), EndsWith(kSmt));
    Policy named = managed({}, {});
    named.rules[0].match = {"kcryptd*"};
    EXPECT_THAT(actions(named), EndsWith("change compare smt"));
    EXPECT_THAT(actions(managed(fixed(Scope::smt))), testing::StartsWith(kSmt))
        << "a rule that names a scope is newer than the command line";
}

// ---- strictness

TEST(PlanStrict, IsAReasonToWriteByItselfUnlessItIsSoOrThereIsNone) {
    const auto text = [](std::optional<bool> wanted, std::optional<bool> is, const ScopeWish& wish) {
        Workqueue target = unbound(kOneLlc, Scope::cache);
        target.strict = is;
        const PlanLine line = plan(kOneLlc, kernel_612(), target, rule_for_all(wish, wanted));
        EXPECT_EQ(line.strict, wanted);
        EXPECT_EQ(line.reason.starts_with("the rule has strict = true; in place: "),
                  line.action == Action::set && *wanted);
        return text_of(line);
    };
    const ScopeWish cache = fixed(Scope::cache);
    EXPECT_EQ(text(true, false, cache), "change set cache");
    EXPECT_EQ(text(false, true, cache), "change set cache");
    EXPECT_EQ(text(true, true, cache), kStays);
    EXPECT_EQ(text(std::nullopt, true, cache), "leave skip cache") << "its candidates would be strict";
    EXPECT_EQ(text(true, std::nullopt, cache), kStays);
    EXPECT_EQ(text(true, false, {}), "change compare smt");
    EXPECT_EQ(text(true, false, leave()), "leave skip cache");
}

// ---- unknown pods

std::string why_unknown(const Topology& topology, const std::string& known, const KernelInfo& kernel) {
    return why_pods_unknown(topology, *CpuSet::parse_list(known), kernel,
                            kernel.cache_shard_size.value_or(8));
}

Topology with_room(Topology topology, unsigned possible) {
    topology.possible = CpuSet::range(0, possible - 1);
    return topology;
}

// What CPUs that were absent at boot can change: nothing in `cache`, the number of shards in `cache_shard`,
// and their own pod.
TEST(PodsUnknown, WhereThePodsOfOnlineCpusDependOnAbsentOnes) {
    const Topology four = machine({.cores = 4});
    const Topology ten = machine({.cores = 10});
    const Topology twelve = machine({.cores = 12});
    const Topology one_cpu_sockets = machine({.sockets = 4, .cores = 1, .one_node = true});
    const Topology threads = machine({.cores = 8, .threads = 2});
    struct Case {
        Topology topology;
        const char* known;
        KernelInfo kernel;
        const char* why;
    };
    const Case cases[] = {
        {four, "0-3", kernel_612(), ""},
        {test::without(four, "3"), "0-2", kernel_612(), ""},
        {test::without(four, "3"), "0-2", kernel_72(), ""},
        {four, "0-2", kernel_612(), "CPUs that were not usable when the daemon first started: 3"},
        {four, "0-2", kernel_72(), "CPUs that were not usable when the daemon first started: 3"},
        // With 11 cores an LLC is one shard of 8, with 12 two. Offline CPUs may have been online at boot.
        {test::without(twelve, "11"), "0-10", kernel_612(), ""},
        {test::without(twelve, "11"), "0-10", kernel_72(), "offline CPUs: 11"},
        {test::without(ten, "9"), "0-8", kernel_72(), ""},
        // Absent CPUs share a pod with each other, or with CPU 0.
        {with_room(one_cpu_sockets, 128), "0-3", kernel_612(), ""},
        {with_room(one_cpu_sockets, 128), "0-3", kernel_72(), ""},
        {with_room(one_cpu_sockets, 128), "0-2", kernel_72(),
         "CPUs that were not usable when the daemon first started: 3"},
        {with_room(four, 128), "0-3", kernel_72(), ""},
        {with_room(four, 8), "0-3", kernel_72(2), ""},
        {with_room(four, 8), "0-3", kernel_72(3), "CPUs possible but not present: 4-7"},
        {with_room(twelve, 16), "0-11", kernel_612(), ""},
        {with_room(twelve, 16), "0-11", kernel_72(), "CPUs possible but not present: 12-15"},
        {test::without(threads, "8-15"), "0-7", kernel_612(), ""},
        {test::without(threads, "8-15"), "0-7", kernel_72(), "offline CPUs: 8-15"},
    };
    for (std::size_t i = 0; i < std::size(cases); i++)
        EXPECT_EQ(why_unknown(cases[i].topology, cases[i].known, cases[i].kernel), cases[i].why) << i;
}

TEST(PodsUnknown, WhereACpuWasAlwaysIsolatedOrTheTopologyIsInDoubt) {
    Topology topology = machine({.cores = 4});
    topology.isolated = {1, 2};
    EXPECT_EQ(why_unknown(topology, "0,3", kernel_612()), "isolated CPUs: 1-2");
    EXPECT_EQ(why_unknown(topology, "0-3", kernel_612()), "") << "a partition made since then";
    topology.warnings = {"CPU 3: garbage", "CPU 4: garbage"};
    EXPECT_EQ(why_unknown(topology, "0-3", kernel_612()), "the topology is in doubt: CPU 3: garbage");
}

TEST(PodsUnknown, WhereCpusAreOnlineThatTheCommandLineKeptOffline) {
    const Topology threads = machine({.cores = 8, .threads = 2});
    for (KernelInfo kernel : {kernel_612(), kernel_72()}) {
        kernel.cpus_held_back = "nosmt";
        EXPECT_EQ(why_unknown(threads, "0-15", kernel), "nosmt kept CPUs offline at boot");
        EXPECT_EQ(why_unknown(test::without(threads, "8-15"), "0-7", kernel), "");
        for (const char* options : {"maxcpus=6", "nosmt and maxcpus=6", "maxcpus=6 and nosmt"}) {
            kernel.cpus_held_back = options;
            EXPECT_EQ(why_unknown(threads, "0-15", kernel),
                      std::string(options) + " kept CPUs offline at boot");
            EXPECT_EQ(why_unknown(test::without(threads, "6-15"), "0-5", kernel), "");
        }
        kernel.cpus_held_back = "maxcpus=4";
        EXPECT_EQ(why_unknown(machine({.cores = 4}), "0-3", kernel), "");
    }
}

TEST(PodsUnknown, MeansToWriteNothing) {
    const auto [parameter, follower] = plan_both(managed(), kernel_612(), "offline CPUs: 3");
    for (const PlanLine& line : {parameter, follower}) {
        EXPECT_EQ(text_of(line), "pods_unknown skip cache") << "it stays";
        EXPECT_EQ(line.reason, "pods unknown: offline CPUs: 3");
        EXPECT_THAT(line.candidates, testing::IsEmpty());
    }
    const auto text = [](const Policy& policy) {
        return text_of(std::get<1>(plan_both(policy, kernel_612(), "x")));
    };
    EXPECT_EQ(text(managed(fixed(Scope::smt), fixed(Scope::smt))), "pods_unknown skip cache");
    EXPECT_EQ(text(managed({}, leave())), "leave skip cache");
}

// ---- other kernels

TEST(OtherKernel, WithoutScopesSupportsNothingAndWithFewIsLeft) {
    KernelInfo kernel;
    for (const PlanLine& line :
         {std::get<0>(plan_both(managed(), kernel)), std::get<1>(plan_both(managed(), kernel))}) {
        EXPECT_EQ(line.finding, Finding::unsupported);
        EXPECT_EQ(line.reason, "this kernel has no affinity scopes: 6.6 or later is needed");
    }
    kernel.scopes = {Scope::cache, Scope::system};  // no smt, and nothing small
    const PlanLine line = plan(kOneLlc, kernel, unbound(kOneLlc, Scope::cache));
    EXPECT_EQ(text_of(line), "leave skip cache");
    EXPECT_EQ(line.reason, "no scope to choose from");
}

TEST(NamedOnly, ARuleWithEvidenceNamesNothing) {
    const Workqueue target = unbound(kOneLlc, Scope::cache);
    Policy policy = rule_for_all(fixed(Scope::smt));
    policy.rules[0].match = {target.name};
    EXPECT_EQ(NamedOnly{.host = "a realtime kernel"}.why(policy, target), "");
    policy.rules[0].evidence = "31% better";
    EXPECT_NE(NamedOnly{.host = "a realtime kernel"}.why(policy, target), "");
    const Workqueue parameter{.name = std::string(kDefaultTarget), .kind = Kind::default_scope};
    policy.default_scope.origin.file = "50-fleet.toml";
    EXPECT_TRUE(is_named(policy, parameter));
    policy.default_scope.evidence = "31% better";
    EXPECT_FALSE(is_named(policy, parameter));
}

TEST(OtherKernel, IsPlannedForASyntheticTopologyToo) {
    const test::TempTree tree;  // has no policy file: the shipped policy applies
    ctl::Options options;
    options.root = tree.root();
    options.topology = "synthetic:package:1 l3:1 core:12 pu:2";
    const auto text = [&] { return text_of(ctl::read_machine(options).value().plan().at(0)); };
    EXPECT_EQ(ctl::read_machine(options).value().plan().at(0).target.name, "*");
    EXPECT_EQ(text(), "change compare smt");
    options.kernel_scopes = {Scope::cpu,   Scope::smt,  Scope::cache_shard,
                             Scope::cache, Scope::numa, Scope::system};
    EXPECT_EQ(text(), kShards);
    options.shard_size = 12;
    EXPECT_EQ(text(), kShards) << "one shard is the whole LLC";
    options.kernel_scopes = {Scope::cache};
    options.shard_size.reset();
    EXPECT_EQ(text(), "leave skip cache");
}

}  // namespace
}  // namespace wq
