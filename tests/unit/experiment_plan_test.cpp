// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --experiments`.
#include "ctl/experiment_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_machine.h"

namespace wq::ctl {
namespace {

using test::default_target;
using test::fixed;
using test::kernel_612;
using test::leave;
using test::machine;
using test::rule_for_all;
using test::unbound;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One LLC of 12 cores with two threads, and a kernel without shards: the plan is smt, and cpu is finer.
struct Rig {
    explicit Rig(const ScopeWish& wish = {}, Mode mode = Mode::tune) {
        machine.topology = test::machine({.cores = 12, .threads = 2});
        machine.kernel = kernel_612();
        machine.policy = rule_for_all(wish);
        machine.policy.mode = mode;
        machine.policy.apply_unjudged = false;
        machine.targets = {default_target(machine.topology, Scope::cache),
                           unbound(machine.topology, Scope::cache, "kcryptd"),
                           unbound(machine.topology, Scope::cache, "writeback")};
    }
    [[nodiscard]] ExperimentPlan plan() const { return experiments_of(machine, machine.plan()); }
    Machine machine;
};

TEST(ExperimentPlan, EachTargetMeetsWhatIsFinerThePlanFirst) {
    const ExperimentPlan plan = Rig().plan();
    ASSERT_EQ(plan.targets.size(), 3U);
    EXPECT_THAT(plan.targets[0].candidates, IsEmpty()) << "@default is not managed";
    EXPECT_EQ(plan.targets[1].reference, "cache");
    EXPECT_THAT(plan.targets[1].candidates, ElementsAre("smt", "cpu"));
    EXPECT_EQ(plan.targets[1].reason, "");
    // Two windows, each with a washout, of 2 s and 500 ms.
    EXPECT_EQ(plan.slot_seconds, 5);
    EXPECT_EQ(plan.most_seconds, 2 * 64 * 5) << "both targets at once";
}

TEST(ExperimentPlan, DefaultComesLastAndItsFollowersAreComparedForThemselves) {
    Rig rig;
    rig.machine.policy.default_scope.manage = true;
    const ExperimentPlan plan = rig.plan();
    EXPECT_THAT(plan.targets[0].candidates, ElementsAre("smt", "cpu"));
    EXPECT_THAT(plan.targets[1].candidates, ElementsAre("smt", "cpu"));
    EXPECT_EQ(plan.most_seconds, (2 + 2) * 64 * 5) << "@default is alone, after the others";
    rig.machine.policy.apply_unjudged = true;
    EXPECT_EQ(rig.machine.plan()[1].action, Action::none) << "then it follows at once";
}

TEST(ExperimentPlan, ManyTargetsShareSlots) {
    Rig rig;
    rig.machine.policy.judge.concurrent = 2;
    for (int i = 0; i < 3; i++)
        rig.machine.targets.push_back(
            unbound(rig.machine.topology, Scope::cache, "more" + std::to_string(i)));
    EXPECT_EQ(rig.plan().most_seconds, (5 * 2 / 2) * 64 * 5);
}

TEST(ExperimentPlan, InModeGuardThePlanAlone) {
    EXPECT_THAT(Rig({}, Mode::guard).plan().targets[1].candidates, ElementsAre("smt"));
    const auto in_place = Rig(fixed(Scope::cache), Mode::guard).plan().targets[1];
    EXPECT_THAT(in_place.candidates, IsEmpty());
    EXPECT_THAT(in_place.reason, HasSubstr("mode guard"));
}

TEST(ExperimentPlan, ARuleThatNamesAScopeNamesTheOnlyCandidate) {
    EXPECT_THAT(Rig(fixed(Scope::cpu)).plan().targets[1].candidates, ElementsAre("cpu"));
    const auto in_place = Rig(fixed(Scope::cache)).plan().targets[1];
    EXPECT_THAT(in_place.candidates, IsEmpty());
    EXPECT_EQ(in_place.reason, "the scope that the rule names is in place");
}

TEST(ExperimentPlan, WhatIsNotComparedSaysWhy) {
    EXPECT_THAT(Rig(leave()).plan().targets[1].reason, HasSubstr("leave"));
    EXPECT_EQ(Rig({}, Mode::observe).plan().targets[1].reason, "mode observe writes nothing");
}

TEST(ExperimentPlan, JsonHasTheMostThatATargetTakes) {
    const Rig rig;
    const ExperimentPlan plan = rig.plan();
    EXPECT_EQ(experiments_json(rig.machine, plan, plan.targets[1]),
              (nlohmann::json{{"name", "kcryptd"},
                              {"reference", "cache"},
                              {"candidates", {"smt", "cpu"}},
                              {"pairs", 128},
                              {"seconds", 640.0},
                              {"reason", ""}}));
    EXPECT_TRUE(experiments_json(rig.machine, plan, plan.targets[0]).at("reference").is_null());
}

}  // namespace
}  // namespace wq::ctl
