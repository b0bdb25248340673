// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/shown.h"

#include <gmock/gmock.h>

#include "fake_machine.h"

namespace wq::ctl {
namespace {

using test::machine;
using test::unbound;
using testing::ElementsAre;

// One LLC of 12 cores with two threads, and a kernel without shards: the plan is smt, and cpu is finer.
struct Rig {
    explicit Rig(const ScopeWish& wish = {}) {
        machine.topology = test::machine({.cores = 12, .threads = 2});
        machine.kernel = test::kernel_612();
        machine.policy = test::rule_for_all(wish);
        machine.targets = {test::default_target(machine.topology, Scope::cache),
                           unbound(machine.topology, Scope::cache, "kcryptd"),
                           unbound(machine.topology, Scope::cache, "writeback")};
    }
    [[nodiscard]] ExperimentPlan plan() const { return experiments_of(machine, machine.plan()); }
    Machine machine;
};

TEST(ExperimentPlan, DefaultComesLastAndItsFollowersAreComparedForThemselves) {
    Rig rig;
    rig.machine.policy.default_scope.manage = true;
    const ExperimentPlan plan = rig.plan();
    EXPECT_THAT(plan.targets[0].candidates, ElementsAre("smt", "cpu"));
    EXPECT_THAT(plan.targets[1].candidates, ElementsAre("smt", "cpu"));
    EXPECT_EQ(plan.most_seconds, (3 + 3) * 64 * 5) << "@default is alone, after the others";
}

TEST(ExperimentPlan, ManyTargetsShareSlots) {
    Rig rig;
    rig.machine.policy.judge.concurrent = 2;
    for (int i = 0; i < 3; i++)
        rig.machine.targets.push_back(
            unbound(rig.machine.topology, Scope::cache, "more" + std::to_string(i)));
    EXPECT_EQ(rig.plan().most_seconds, 8 * 64 * 5) << "5 targets with 3 comparisons, two at once";
}

// Four LLCs of 16 cores, two in each node, and all CPUs in one pool: the plan is cache_shard.
TEST(ExperimentPlan, AnUndecidedCandidateMayMeetALaterOne) {
    Rig rig;
    Topology& topology = rig.machine.topology;
    topology = test::machine({.sockets = 4, .cores = 16, .threads = 2});
    topology.nodes.clear();
    for (const unsigned node : {0U, 1U}) {
        CpuSet cpus = topology.llcs.at(2 * node).cpus;
        cpus |= topology.llcs.at(2 * node + 1).cpus;
        topology.nodes.push_back({node, cpus});
    }
    rig.machine.kernel = test::kernel_72();
    rig.machine.targets = {unbound(topology, Scope::system, "kcryptd")};
    const ExperimentPlan plan = rig.plan();
    EXPECT_THAT(plan.targets[0].candidates, ElementsAre("cache_shard", "cache", "numa", "smt", "cpu"));
    EXPECT_EQ(plan.targets[0].comparisons, 5U + 4 + 1)
        << "the plan may meet each of the others again; cache, which is finer, numa";
    EXPECT_EQ(plan.most_seconds, 10 * 64 * 5);
    rig.machine.policy.rules[0].wish.kind = ScopeWish::Kind::plan;
    EXPECT_EQ(rig.plan().targets[0].comparisons, 1U);
}

}  // namespace
}  // namespace wq::ctl
