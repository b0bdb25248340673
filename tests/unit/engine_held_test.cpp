// SPDX-License-Identifier: LGPL-2.1-or-later
// What is held by somebody else, by an order or by a refusal, and what that means for the rest.
#include <gmock/gmock.h>

#include <cerrno>

#include "fake_rig.h"

namespace wq {
namespace {

class TunerHeld : public test::Rig {};

TEST_F(TunerHeld, ForeignStrictnessIsNeverOverwritten) {
    tuner_->set_policy(test::rule_for_all({}, true));
    tuner_->reconcile();
    ASSERT_EQ(strict("kcryptd"), "1");
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    tuner_->reconcile();
    EXPECT_EQ(strict("kcryptd"), "0");
}
TEST_F(TunerHeld, WhatIsOursBesideAForeignStrictnessStaysUntilNothingMayBeWritten) {
    tuner_->set_policy(test::rule_for_all({}, true));
    tuner_->reconcile();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    tuner_->reconcile();
    ASSERT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd"), "smt");
    tuner_->observe("/etc/wq-tuned/disabled exists");
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "default (cache) 0");
    files_->asked.clear();
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::external);
}
TEST_F(TunerHeld, FollowersOfARefusedDefaultArePlannedForThemselves) {
    files_->on_write = [](const auto& name, const auto&) { return name == kDefaultTarget ? EPERM : 0; };
    Policy p = test::rule_for_all();
    p.default_scope.manage = true;
    tuner_->set_policy(p);
    tuner_->reconcile();
    tuner_->reconcile();
    EXPECT_EQ(state("@default"), State::quarantined);
    EXPECT_EQ(scope("kcryptd"), "smt") << name_of(state("kcryptd")) << " " << reason("kcryptd");
}
TEST_F(TunerHeld, PinOnRecordWhilePodsUnknownAfterRestart) {
    ASSERT_TRUE(tuner_->pin("kcryptd", "cpu"));
    tuner_->observe("x");
    tuner_->reconcile();
    restart();
    topology_ = test::without(topology_, "3");
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U) << "pods unknown forbids new writes";
}

TEST_F(TunerHeld, AForeignWordIsLeftWhereWeNeverWrote) {
    tuner_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::cache}));
    tuner_->reconcile();
    ASSERT_EQ(state("kcryptd"), State::as_planned);
    set_scope("kcryptd", "cpu");
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    tuner_->reconcile();
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "cpu");
    EXPECT_EQ(asked(), 0U);
}

TEST_F(TunerHeld, AWordOfOurPastIsForeignWhenSomebodyElseWritesIt) {
    tuner_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::cpu}));
    tuner_->reconcile();
    tuner_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::smt}));
    tuner_->reconcile();
    ASSERT_EQ(scope("kcryptd"), "smt");
    set_scope("kcryptd", "cpu");
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    restart();
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "cpu");
}

TEST_F(TunerHeld, ABaselinePutBackBySomebodyElseStaysThroughARestart) {
    tuner_->reconcile();
    ASSERT_EQ(scope("kcryptd"), "smt");
    set_scope("kcryptd", "default (cache)");
    tuner_->reconcile();
    restart();
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::external);
    tuner_->set_policy(test::rule_for_all());
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt") << "a reload finds the baseline and begins anew";
}

TEST_F(TunerHeld, TheWordOfATrialWhoseStrictnessSomebodyWroteGoesBackAtItsEnd) {
    const Arms arms = put_strict_candidate_in_place();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    tuner_->look();
    EXPECT_EQ(tuner_->switch_to("kcryptd", arms.baseline).kind, Outcome::Kind::foreign);
    tuner_->end_trial("kcryptd");
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "default (cache) 0");
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(TunerHeld, WhoTookAnArmBackBeforeTheEndOfATrialIsNotOverwritten) {
    tuner_->set_policy(test::rule_for_all({}, true));
    tuner_->reconcile();
    ASSERT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "smt 1") << "applied without a trial";
    const Arms arms{{Scope::cache, "default", false}, {Scope::numa, "numa", false}};
    ASSERT_TRUE(tuner_->begin_trial("kcryptd"));
    ASSERT_EQ(tuner_->switch_to("kcryptd", arms.candidate).kind, Outcome::Kind::done);
    tree_.write(test::wq_path("kcryptd"), "default (cache)\n");
    tuner_->end_trial("kcryptd");
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TunerHeld, AppliedIsSaidOfWhatIsApplied) {
    tuner_->look();
    EXPECT_EQ(state("kcryptd"), State::waiting) << reason("kcryptd");
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::applied);
}

TEST_F(TunerHeld, RevertOfAllWritesNothingWhileObserving) {
    tuner_->observe("the baseline file is broken");
    tuner_->reconcile();
    EXPECT_FALSE(tuner_->revert(std::nullopt));
    EXPECT_EQ(asked(), 0U);
}

}  // namespace
}  // namespace wq
