// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/plan.h"
#include "plan/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.h"

namespace wq {
namespace {

using test::fixed;
using test::kernel_612;
using test::kernel_72;
using test::leave;
using test::machine;
using test::rule_for_all;
using test::unbound;
using testing::ElementsAre;
using testing::HasSubstr;

const Topology kOneSocket = machine({.cores = 12, .threads = 2});
const Topology kTwoLlcs = machine({.sockets = 2, .cores = 4, .threads = 2});

// The plan line of a single TARGET.
PlanLine plan(const Topology& topology, const KernelInfo& kernel, const Workqueue& target,
              const Policy& policy = rule_for_all(), unsigned size = 8, const std::string& unknown = "") {
    return make_plan({topology, kernel, policy, {target}, unknown, size}).at(0);
}

// The plan line of a workqueue with the default scope of KERNEL.
PlanLine plan(const Topology& topology, const KernelInfo& kernel, unsigned size = 8) {
    return plan(topology, kernel, unbound(topology, kernel.default_scope()), rule_for_all(), size);
}

// "system 1x8..8": scope, number of pools, cores of the smallest and of the largest pool.
std::vector<std::string> candidates_of(const PlanLine& line) {
    std::vector<std::string> out;
    for (const Candidate& c : line.candidates)
        out.push_back(std::string(name_of(c.scope)) + " " + std::to_string(c.pools) + "x" +
                      std::to_string(c.min_cores) + ".." + std::to_string(c.max_cores));
    return out;
}

void expect_write(const PlanLine& line, Scope planned) {
    EXPECT_EQ(line.action, Action::set) << line.reason;
    EXPECT_EQ(line.finding, Finding::change);
    EXPECT_EQ(line.planned, planned);
}

void expect_none(const PlanLine& line, Finding finding, std::optional<Scope> planned) {
    EXPECT_EQ(line.action, finding == Finding::in_place ? Action::none : Action::skip) << line.reason;
    EXPECT_EQ(line.finding, finding);
    EXPECT_EQ(line.planned, planned);
}

// ---- the rule

TEST(Plan, CutsALargeLlcToItsCoresWhereThereAreNoShards) {
    const PlanLine line = plan(kOneSocket, kernel_612());
    expect_write(line, Scope::smt);
    EXPECT_THAT(candidates_of(line), ElementsAre("system 1x12..12", "smt 12x1..1", "cpu 24x1..1"));
    EXPECT_THAT(line.reason,
                HasSubstr("`smt`: pools of 1 core; `system` (12 cores) exceeds the limit of 11"));
}

TEST(Plan, LeavesShardsWhereTheKernelHasThem) {
    const PlanLine line = plan(kOneSocket, kernel_72());
    expect_none(line, Finding::in_place, Scope::cache_shard);
    EXPECT_THAT(candidates_of(line),
                ElementsAre("system 1x12..12", "cache_shard 2x6..6", "smt 12x1..1", "cpu 24x1..1"));
    EXPECT_THAT(line.reason,
                HasSubstr("in place: `cache_shard`: pools of 6 cores; `system` (12 cores) exceeds"));
}

TEST(Plan, ChoosesShardsForAWorkqueueOnAnotherScope) {
    expect_write(plan(kOneSocket, kernel_72(), unbound(kOneSocket, Scope::cache)), Scope::cache_shard);
}

TEST(Plan, OfTwoSmallSocketsIsToLeaveThem) {
    const PlanLine line = plan(kTwoLlcs, kernel_612());
    expect_none(line, Finding::in_place, Scope::cache);
    EXPECT_THAT(candidates_of(line),
                ElementsAre("system 1x8..8", "numa 2x4..4", "smt 8x1..1", "cpu 16x1..1"));
    expect_none(plan(kTwoLlcs, kernel_72()), Finding::in_place, Scope::cache_shard);
}

TEST(Plan, NamesEqualPodsByTheCoarsest) {
    const PlanLine line = plan(kTwoLlcs, kernel_72());
    ASSERT_EQ(line.candidates.size(), 4U);
    EXPECT_THAT(line.candidates[1].same, ElementsAre(Scope::cache_shard, Scope::cache, Scope::numa));
    EXPECT_THAT(line.candidates[2].same, ElementsAre(Scope::smt));
    const Topology flat = machine({.cores = 4});  // one LLC, no siblings
    EXPECT_THAT(candidates_of(plan(flat, kernel_72())), ElementsAre("system 1x4..4", "smt 4x1..1"));
}

TEST(Plan, IsNothingOnOneCpu) {
    const Topology one = machine({.cores = 1});
    const PlanLine line = plan(one, kernel_612());
    expect_none(line, Finding::in_place, Scope::cache);
    EXPECT_THAT(candidates_of(line), ElementsAre("system 1x1..1"));
}

TEST(Plan, RoundsCoresToShards) {
    // round(11 / 8) is one shard, round(12 / 8) two.
    expect_none(plan(machine({.cores = 11}), kernel_612()), Finding::in_place, Scope::cache);
    expect_write(plan(machine({.cores = 12}), kernel_612()), Scope::smt);
    expect_none(plan(machine({.cores = 5}), kernel_612(), 4), Finding::in_place, Scope::cache);
    expect_write(plan(machine({.cores = 6}), kernel_612(), 4), Scope::smt);
}

TEST(Plan, LooksAtTheLargestPod) {
    Topology uneven = machine({.sockets = 2, .cores = 12});
    uneven = test::without(uneven, "16-23");  // 12 cores and 4
    uneven.present = uneven.possible = uneven.online;
    expect_write(plan(uneven, kernel_612()), Scope::smt);
}

TEST(Plan, NeverCrossesAnLlcByItself) {
    const Topology small = machine({.sockets = 4, .cores = 2, .one_node = true});
    // system would be one shard of 8 cores, but of four LLCs.
    expect_none(plan(small, kernel_612()), Finding::in_place, Scope::cache);
}

// ---- packages of one core

TEST(Plan, WidensSocketsOfOneCpu) {
    for (const bool one_node : {true, false}) {
        const Topology vm = machine({.sockets = 8, .cores = 1, .one_node = one_node});
        const PlanLine line = plan(vm, kernel_612());
        expect_write(line, Scope::system);
        EXPECT_THAT(line.reason, HasSubstr("no LLC grouping; `system` gives pools of 8 cores, shard size 8"));
        EXPECT_THAT(candidates_of(line),
                    ElementsAre("system 1x8..8", one_node ? "cache 8x1..1" : "numa 8x1..1"));
        expect_write(plan(vm, kernel_72()), Scope::system);
    }
}

TEST(Plan, WidensBesideIsolatedCpus) {
    Topology vm = machine({.sockets = 8, .cores = 1, .one_node = true});
    std::erase_if(vm.llcs, [](const Llc& llc) { return llc.cpus.first() >= 6; });
    expect_write(plan(vm, kernel_612()), Scope::system);
}

TEST(Plan, WidensToTheFinestThatJoinsCores) {
    // 16 sockets of one CPU in two nodes: numa has pools of 8.
    Topology vm = machine({.sockets = 16, .cores = 1, .one_node = true});
    vm.nodes = {{0, CpuSet::range(0, 7)}, {1, CpuSet::range(8, 15)}};
    expect_write(plan(vm, kernel_612()), Scope::numa);
}

TEST(Plan, WidensOnlyWhereThatIsNearerToTheSizeThanACoreIs) {
    // cppcheck-suppress legacyUninitvar ; a designator is no variable
    const auto sockets = [](unsigned n) { return machine({.sockets = n, .cores = 1}); };
    expect_write(plan(sockets(2), kernel_612()), Scope::system);   // 2 is nearer to 8 than 1 is
    expect_write(plan(sockets(16), kernel_612()), Scope::system);  // |log2(16/8)| = 1 < 3
    expect_write(plan(sockets(63), kernel_612()), Scope::system);
    expect_none(plan(sockets(64), kernel_612()), Finding::in_place, Scope::cache);  // 3 < 3 is false
    EXPECT_THAT(plan(sockets(64), kernel_612()).reason,
                HasSubstr("`system` (64 cores) exceeds the limit of 63 for one-core sockets"));
    expect_none(plan(sockets(8), kernel_612(), 1), Finding::in_place, Scope::cache);
    expect_write(plan(sockets(15), kernel_612(), 4), Scope::system);
    expect_none(plan(sockets(16), kernel_612(), 4), Finding::in_place, Scope::cache);
}

TEST(Plan, WidensCoresOfTwoThreadsButNotOfFour) {
    expect_write(plan(machine({.sockets = 8, .cores = 1, .threads = 2}), kernel_612()), Scope::system);
    // Four siblings: a POWER or a ThunderX2, whose topology is real.
    expect_none(plan(machine({.sockets = 8, .cores = 1, .threads = 4}), kernel_612()), Finding::in_place,
                Scope::cache);
}

TEST(Plan, DoesNotWidenWhereOneLlcHasTwoCores) {
    Topology mixed = machine({.sockets = 8, .cores = 1, .one_node = true});
    mixed.llcs[6].cpus |= mixed.llcs[7].cpus;
    mixed.llcs.pop_back();
    expect_none(plan(mixed, kernel_612()), Finding::in_place, Scope::cache);
}

TEST(Plan, DoesNotWidenCoresOfOnePackage) {
    Topology private_caches = machine({.cores = 16, .one_node = true});
    private_caches.llcs.clear();
    for (const CpuSet& core : private_caches.cores) private_caches.llcs.push_back({core, 0});
    expect_none(plan(private_caches, kernel_612()), Finding::in_place, Scope::cache);
    private_caches.packages.clear();  // packages are not known
    expect_none(plan(private_caches, kernel_612()), Finding::in_place, Scope::cache);
}

TEST(Plan, SaysWhatCrossesLlcs) {
    const PlanLine line = plan(machine({.sockets = 4, .cores = 2, .one_node = true}), kernel_612());
    EXPECT_EQ(line.reason, "in place: `cache`: pools of 2 cores; `system` crosses LLCs");
}

// ---- masks

TEST(Plan, LooksAtTheCpusOfTheWorkqueueOnly) {
    Workqueue few = unbound(kOneSocket, Scope::cache);
    few.effective = *CpuSet::parse_list("0-3,12-15");
    const PlanLine line = plan(kOneSocket, kernel_612(), few);
    expect_none(line, Finding::in_place, Scope::cache);  // 4 cores are one shard
    EXPECT_THAT(candidates_of(line), ElementsAre("system 1x4..4", "smt 4x1..1", "cpu 8x1..1"));

    Workqueue one = unbound(kOneSocket, Scope::cache);
    one.effective = {5};
    EXPECT_THAT(candidates_of(plan(kOneSocket, kernel_612(), one)), ElementsAre("system 1x1..1"));
}

TEST(Plan, DoesNotWidenAWorkqueueThatHasOneCpu) {
    const Topology vm = machine({.sockets = 8, .cores = 1});
    Workqueue one = unbound(vm, Scope::cache);
    one.effective = {3};
    expect_none(plan(vm, kernel_612(), one), Finding::in_place, Scope::cache);
    one.effective = {3, 4};
    expect_write(plan(vm, kernel_612(), one), Scope::system);
}

TEST(Plan, GivesEachTargetItsOwnMask) {
    Workqueue few = unbound(kOneSocket, Scope::cache, "few");
    few.effective = *CpuSet::parse_list("0-3");
    const Policy policy = rule_for_all();
    const KernelInfo kernel = kernel_612();
    const auto lines =
        make_plan({kOneSocket, kernel, policy, {unbound(kOneSocket, Scope::cache, "all"), few}, "", 8});
    expect_write(lines.at(0), Scope::smt);
    expect_none(lines.at(1), Finding::in_place, Scope::cache);
}

// ---- rules

TEST(Plan, FollowsARuleThatNamesAScope) {
    const PlanLine line =
        plan(kOneSocket, kernel_612(), unbound(kOneSocket, Scope::cache), rule_for_all(fixed(Scope::cpu)));
    expect_write(line, Scope::cpu);  // though it splits siblings
    ASSERT_TRUE(line.rule);
    EXPECT_EQ(line.rule->text(), "rules.toml:1");
    EXPECT_EQ(line.reason, "the rule names `cpu`");
}

TEST(Plan, DoesNotWriteANamedScopeThatMakesTheSamePods) {
    const PlanLine line =
        plan(kOneSocket, kernel_612(), unbound(kOneSocket, Scope::cache), rule_for_all(fixed(Scope::system)));
    expect_none(line, Finding::in_place, Scope::cache);
    EXPECT_EQ(line.reason, "in place: `cache` makes the same pods; the rule names `system`");
}

TEST(Plan, SaysThatAKernelHasNoSuchScope) {
    const PlanLine line = plan(kOneSocket, kernel_612(), unbound(kOneSocket, Scope::cache),
                               rule_for_all(fixed(Scope::cache_shard)));
    expect_none(line, Finding::unsupported, Scope::cache);
    EXPECT_EQ(line.reason, "unsupported: this kernel has no cache_shard");
}

TEST(Plan, LeavesWhatARuleLeaves) {
    const PlanLine line =
        plan(kOneSocket, kernel_612(), unbound(kOneSocket, Scope::cache), rule_for_all(leave()));
    expect_none(line, Finding::leave, Scope::cache);
    EXPECT_THAT(line.candidates, testing::IsEmpty());
}

TEST(Plan, LeavesWhatNoRuleMatches) {
    Policy policy = rule_for_all();
    policy.rules[0].match = {"nvme*"};
    const PlanLine line = plan(kOneSocket, kernel_612(), unbound(kOneSocket, Scope::cache), policy);
    expect_none(line, Finding::unmanaged, Scope::cache);
    EXPECT_EQ(line.reason, "no rule matches");
    EXPECT_FALSE(line.rule);
}

TEST(Plan, TakesTheFirstRuleThatMatches) {
    Policy policy = rule_for_all(leave());
    policy.rules.insert(policy.rules.begin(), {{"kcrypt*"}, fixed(Scope::numa), {}, {"rules.toml", 7}});
    policy.rules.insert(policy.rules.begin(), {{"nvme*"}, fixed(Scope::cpu), {}, {"rules.toml", 9}});
    const PlanLine line = plan(kTwoLlcs, kernel_612(), unbound(kTwoLlcs, Scope::system), policy);
    expect_write(line, Scope::numa);
    EXPECT_EQ(line.rule->line, 7U);
}

TEST(Plan, PassesOverWhatCannotBeTouched) {
    for (const char* why : {"ordered", "max_active is 1", "affinity_scope: not an affinity scope"}) {
        Workqueue target = unbound(kOneSocket, Scope::cache);
        target.untouchable = why;
        const PlanLine line = plan(kOneSocket, kernel_612(), target, rule_for_all(fixed(Scope::smt)));
        EXPECT_EQ(line.action, Action::skip);
        EXPECT_EQ(line.finding, Finding::untouchable);
        EXPECT_EQ(line.reason, why);
        EXPECT_FALSE(line.planned);
    }
}

TEST(Plan, KnowsNoPodsForAMaskOfCpusThatAreNotOnline) {
    Workqueue target = unbound(kOneSocket, Scope::cache);
    target.effective = *CpuSet::parse_list("64-71");
    for (const Policy& policy : {rule_for_all(), rule_for_all(fixed(Scope::smt))}) {
        const PlanLine line = plan(kOneSocket, kernel_612(), target, policy);
        expect_none(line, Finding::pods_unknown, Scope::cache);
        EXPECT_THAT(line.reason, HasSubstr("none of its CPUs is online"));
        EXPECT_THAT(line.candidates, testing::IsEmpty());
    }
}

TEST(Plan, KeepsTheOrderOfTheTargets) {
    const Policy policy = rule_for_all();
    const KernelInfo kernel = kernel_612();
    const auto lines =
        make_plan({kOneSocket,
                   kernel,
                   policy,
                   {unbound(kOneSocket, Scope::cache, "b"), test::default_target(kOneSocket, Scope::cache),
                    unbound(kOneSocket, Scope::cache, "a")},
                   "",
                   8});
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0].target.name, "b");
    EXPECT_EQ(lines[1].target.name, "@default");
    EXPECT_EQ(lines[2].target.name, "a");
}

TEST(PodsUnknown, WhereTheTopologyIsInDoubt) {
    Topology doubtful = kOneSocket;
    EXPECT_EQ(why_pods_unknown(doubtful, doubtful.online, kernel_612(), 8), "");
    doubtful.warnings = {"CPU 3: garbage", "CPU 4: garbage"};
    EXPECT_EQ(why_pods_unknown(doubtful, doubtful.online, kernel_612(), 8),
              "the topology is in doubt: CPU 3: garbage");
}

TEST(Plan, OfAScopeThatWeDoNotKnowIsToSetOurs) {
    Workqueue target = unbound(kOneSocket, Scope::cache);
    target.scope = {"pony", std::nullopt};
    expect_write(plan(kOneSocket, kernel_612(), target), Scope::smt);
}

}  // namespace
}  // namespace wq
