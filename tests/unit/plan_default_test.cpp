// SPDX-License-Identifier: LGPL-2.1-or-later
// @default and its followers, strictness, unknown pods, and plans for other kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "ctl/machine.h"
#include "fake_machine.h"
#include "machine/udev.h"
#include "plan/plan.h"
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
using testing::HasSubstr;
using testing::StartsWith;

const Topology kOneLlc = machine({.cores = 12, .threads = 2});

constexpr ScopeWish::Kind kPlan = ScopeWish::Kind::plan;

Policy managed(const ScopeWish& wish = {.kind = kPlan}, const ScopeWish& rules = {.kind = kPlan}) {
    Policy out = rule_for_all(rules);
    out.default_scope = {true, wish, {"rules.toml", 20}};
    return out;
}

// The lines of @default and of a workqueue on `default`, on a machine where `auto` means smt.
struct Pair {
    PlanLine parameter;
    PlanLine follower;
};
Pair plan_both(const Policy& policy, const KernelInfo& kernel = kernel_612(),
               const std::string& unknown = "") {
    // The follower comes first: the order of the list must not matter.
    const auto lines = make_plan({kOneLlc,
                                  kernel,
                                  policy,
                                  {unbound(kOneLlc, Scope::cache), default_target(kOneLlc, Scope::cache)},
                                  unknown,
                                  8});
    return {lines.at(1), lines.at(0)};
}

TEST(PlanDefault, IsLeftUnlessManaged) {
    const auto [parameter, follower] = plan_both(rule_for_all());
    EXPECT_EQ(parameter.finding, Finding::unmanaged);
    EXPECT_EQ(parameter.action, Action::skip);
    EXPECT_EQ(follower.action, Action::set) << "which then writes the workqueue itself";
    EXPECT_EQ(follower.planned, Scope::smt);
}

TEST(PlanDefault, MovesItsFollowers) {
    const auto [parameter, follower] = plan_both(managed());
    EXPECT_EQ(parameter.action, Action::set);
    EXPECT_EQ(parameter.planned, Scope::smt);
    EXPECT_EQ(parameter.rule->text(), "rules.toml:20");
    EXPECT_EQ(follower.finding, Finding::in_place);
    EXPECT_EQ(follower.action, Action::none);
    EXPECT_EQ(follower.planned, Scope::smt);
    EXPECT_EQ(follower.reason, "follows @default to smt");
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

TEST(PlanDefault, HasAFollowerWhosePlanDiffersWritten) {
    const auto [parameter, follower] = plan_both(managed({.kind = kPlan}, fixed(Scope::cache)));
    EXPECT_EQ(parameter.planned, Scope::smt);
    EXPECT_EQ(follower.action, Action::set) << "to stay where it is";
    EXPECT_EQ(follower.planned, Scope::cache);
}

TEST(PlanDefault, DoesNotMoveAWorkqueueWithAScopeOfItsOwn) {
    Workqueue own = unbound(kOneLlc, Scope::cache);
    own.scope.word = "cache";
    const Policy policy = managed({.kind = kPlan}, leave());
    const KernelInfo kernel = kernel_612();
    const auto lines =
        make_plan({kOneLlc, kernel, policy, {default_target(kOneLlc, Scope::cache), own}, "", 8});
    EXPECT_EQ(lines.at(1).planned, Scope::cache);
}

TEST(PlanDefault, IsLeftToTheAdministratorOfTheCommandLine) {
    KernelInfo kernel = kernel_612();
    kernel.default_on_cmdline = true;
    const auto [parameter, follower] = plan_both(managed({}, {}), kernel);
    for (const PlanLine& line : {parameter, follower}) {
        EXPECT_EQ(line.finding, Finding::leave);
        EXPECT_EQ(line.action, Action::skip);
        EXPECT_THAT(line.reason, HasSubstr("kernel command line"));
    }
    EXPECT_EQ(plan_both(managed({}, {.kind = kPlan}), kernel).follower.action, Action::set);
    EXPECT_EQ(plan_both(managed({}, fixed(Scope::smt)), kernel).follower.action, Action::set);
    Policy named = managed({}, {});
    named.rules[0].match = {"kcryptd*"};
    EXPECT_EQ(plan_both(named, kernel).follower.action, Action::compare);
    EXPECT_EQ(plan_both(managed(fixed(Scope::smt)), kernel).parameter.action, Action::set)
        << "a rule that names a scope is newer than the command line";
}

TEST(PlanDefault, IsAlreadyInPlaceWhereTheKernelShards) {
    const KernelInfo kernel = kernel_72();
    const Policy policy = managed();
    const auto lines =
        make_plan({kOneLlc, kernel, policy, {default_target(kOneLlc, Scope::cache_shard)}, "", 8});
    EXPECT_EQ(lines.at(0).finding, Finding::in_place);
}

// ---- strictness

PlanLine plan_strict(std::optional<bool> wanted, std::optional<bool> is, const ScopeWish& wish) {
    Workqueue target = unbound(kOneLlc, Scope::cache);
    target.strict = is;
    const KernelInfo kernel = kernel_612();
    const Policy policy = rule_for_all(wish, wanted);
    return make_plan({kOneLlc, kernel, policy, {target}, "", 8}).at(0);
}

TEST(PlanStrict, IsAReasonToWriteByItself) {
    const PlanLine line = plan_strict(true, false, fixed(Scope::cache));
    EXPECT_EQ(line.action, Action::set);
    EXPECT_EQ(line.planned, Scope::cache);
    EXPECT_EQ(line.strict, true);
    EXPECT_THAT(line.reason, HasSubstr("the rule has strict = true; in place: "));
    EXPECT_EQ(plan_strict(false, true, fixed(Scope::cache)).action, Action::set);
}

TEST(PlanStrict, IsLeftWhereItIsSoOrNoRuleSaysOrThereIsNone) {
    EXPECT_EQ(plan_strict(true, true, fixed(Scope::cache)).finding, Finding::in_place);
    EXPECT_EQ(plan_strict(std::nullopt, true, fixed(Scope::cache)).finding, Finding::in_place);
    EXPECT_EQ(plan_strict(true, std::nullopt, fixed(Scope::cache)).finding, Finding::in_place);
}

TEST(PlanStrict, GoesWithAScope) {
    const PlanLine line = plan_strict(true, false, {});
    EXPECT_EQ(line.planned, Scope::smt);
    EXPECT_EQ(line.strict, true);
    EXPECT_EQ(plan_strict(true, false, leave()).action, Action::skip);
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

TEST(PodsUnknown, WhereACpuWasAlwaysIsolated) {
    Topology isolated = machine({.cores = 4});
    isolated.isolated = {1, 2};
    EXPECT_EQ(why_unknown(isolated, "0,3", kernel_612()), "isolated CPUs: 1-2");
    EXPECT_EQ(why_unknown(isolated, "0-3", kernel_612()), "") << "a partition made since then";
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

// The README's first row, with room for CPUs to be plugged in.
TEST(PodsUnknown, DoNotKeepOneCpuSocketsApart) {
    const Topology topology = with_room(machine({.sockets = 4, .cores = 1, .one_node = true}), 128);
    const KernelInfo kernel = kernel_72();
    const Policy policy = rule_for_all();
    const auto line = make_plan({topology,
                                 kernel,
                                 policy,
                                 {unbound(topology, Scope::cache_shard)},
                                 why_unknown(topology, "0-3", kernel),
                                 8})
                          .at(0);
    EXPECT_EQ(line.planned, Scope::system) << line.reason;
}

TEST(PodsUnknown, MeansToWriteNothing) {
    const auto [parameter, follower] = plan_both(managed(), kernel_612(), "offline CPUs: 3");
    for (const PlanLine* line : {&parameter, &follower}) {
        EXPECT_EQ(line->finding, Finding::pods_unknown);
        EXPECT_EQ(line->action, Action::skip);
        EXPECT_EQ(line->reason, "pods unknown: offline CPUs: 3");
        EXPECT_EQ(line->planned, Scope::cache) << "it stays";
        EXPECT_TRUE(line->candidates.empty());
    }
    EXPECT_EQ(plan_both(managed(fixed(Scope::smt), fixed(Scope::smt)), kernel_612(), "x").follower.action,
              Action::skip);
    EXPECT_EQ(plan_both(managed({}, leave()), kernel_612(), "x").follower.finding, Finding::leave);
}

// ---- other kernels

TEST(OtherKernel, WithoutScopesSupportsNothing) {
    const auto [parameter, follower] = plan_both(managed(), KernelInfo{});
    EXPECT_EQ(follower.finding, Finding::unsupported);
    EXPECT_EQ(follower.reason, "this kernel has no affinity scopes: 6.6 or later is needed");
    EXPECT_EQ(parameter.finding, Finding::unsupported);
}

TEST(OtherKernel, ThatHasNoSmtAndNothingSmallIsLeft) {
    KernelInfo kernel;
    kernel.scopes = {Scope::cache, Scope::system};
    const auto [parameter, follower] = plan_both(rule_for_all(), kernel);
    EXPECT_EQ(follower.finding, Finding::leave);
    EXPECT_EQ(follower.reason, "no scope to choose from");
}

TEST(OtherKernel, BringsItsOwnShardSize) {
    Policy policy;
    policy.shard_size = 4;
    EXPECT_EQ(effective_shard_size(kernel_612(), policy), 4U);
    EXPECT_EQ(effective_shard_size(kernel_72(16), policy), 16U);
}

PlanLine plan_of(const ctl::Options& options) {
    const auto machine = ctl::read_machine(options);
    EXPECT_TRUE(machine) << machine.error().text;
    return machine->plan().at(0);
}

class SyntheticSource : public testing::Test {
  protected:
    SyntheticSource() {
        options_.root = tree_.root();  // has no policy file: the shipped policy applies
        options_.topology = "synthetic:package:1 l3:1 core:12 pu:2";
    }
    test::TempTree tree_;
    ctl::Options options_;
};

TEST_F(SyntheticSource, PlansAnyWorkqueueOnAKernelOfToday) {
    const PlanLine line = plan_of(options_);
    EXPECT_EQ(line.target.name, "*");
    EXPECT_EQ(line.target.scope, (ScopeFile{"default", Scope::cache}));
    EXPECT_EQ(line.planned, Scope::smt);
    EXPECT_EQ(line.action, Action::compare);
}

TEST_F(SyntheticSource, PlansForAnotherKernel) {
    options_.kernel_scopes = {Scope::cpu,   Scope::smt,  Scope::cache_shard,
                              Scope::cache, Scope::numa, Scope::system};
    EXPECT_EQ(plan_of(options_).target.scope.effective, Scope::cache_shard);
    EXPECT_EQ(plan_of(options_).finding, Finding::in_place);
    options_.shard_size = 12;
    EXPECT_EQ(plan_of(options_).planned, Scope::cache_shard) << "one shard is the whole LLC";
    EXPECT_EQ(plan_of(options_).finding, Finding::in_place);
    options_.kernel_scopes = {Scope::cache};
    options_.shard_size.reset();
    EXPECT_EQ(plan_of(options_).finding, Finding::leave);
}

TEST_F(SyntheticSource, ThatIsNoneIsAWrongArgument) {
    options_.topology = "synthetic:nonsense";
    EXPECT_THROW((void)ctl::read_machine(options_), CLI::ValidationError);
}

// ---- the command

TEST(PlanCommand, PromisesComparisonsOnlyWhereThereAreSome) {
    const test::TempTree tree;
    ctl::Options options;
    options.root = tree.root();
    const auto plan_for = [&](const char* topology) {
        options.topology = topology;
        testing::internal::CaptureStdout();
        EXPECT_EQ(ctl::plan(options), 0);
        return testing::internal::GetCapturedStdout();
    };
    EXPECT_THAT(plan_for("synthetic:pack:1 l3:2 core:4 pu:2"),
                StartsWith("1 of 1 target would be compared\n"));
    EXPECT_THAT(plan_for("synthetic:pack:1 core:1 pu:1"),
                StartsWith("None of 1 target would be set or compared.\n"));
}

TEST(PlanCommand, SaysWhatIsReachedByTheDefaultOnly) {
    test::TempTree tree(test::kernel_tree({test::workqueue("one")}));
    tree.add(test::cpu_tree({.cores = 8}));
    ctl::Options options;
    options.root = tree.root();
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::plan(options), 0);
    EXPECT_THAT(testing::internal::GetCapturedStdout(),
                HasSubstr("\n\nOnly @default reaches workqueues without a folder in /sys"));
    tree.write("var/lib/wq-tuned/paused", "");
    testing::internal::CaptureStdout();
    EXPECT_EQ(ctl::plan(options), 0);
    EXPECT_THAT(
        testing::internal::GetCapturedStdout(),
        HasSubstr("\n\nNo comparison begins now: paused by `wq-tunectl pause`.\nOnly @default reaches"));
}

}  // namespace
}  // namespace wq
