// SPDX-License-Identifier: LGPL-2.1-or-later
// Targets that are held by an external writer, an order or a refusal, and the effect on other targets.
#include <gmock/gmock.h>

#include <cerrno>

#include "fake_rig.h"

namespace wq {
namespace {

class EngineHeld : public test::Rig {};

TEST_F(EngineHeld, ForeignStrictnessIsNeverOverwritten) {
    engine_->set_policy(test::rule_for_all(test::planned(), true));
    engine_->reconcile();
    ASSERT_EQ(strict("kcryptd"), "1");
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    engine_->reconcile();
    EXPECT_EQ(strict("kcryptd"), "0");
}
TEST_F(EngineHeld, WhatIsOursBesideAForeignStrictnessStaysUntilNothingMayBeWritten) {
    engine_->set_policy(test::rule_for_all(test::planned(), true));
    engine_->reconcile();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    engine_->reconcile();
    ASSERT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd"), "smt");
    engine_->observe("/etc/wq-tuned/disabled exists");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "default (cache) 0");
    files_->asked.clear();
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::external);
}
TEST_F(EngineHeld, FollowersOfARefusedDefaultArePlannedForThemselves) {
    files_->on_write = [](const auto& name, const auto&) { return name == kDefaultTarget ? EPERM : 0; };
    Policy p = test::rule_for_all();
    p.default_scope.manage = true;
    p.default_scope.wish = test::planned();
    engine_->set_policy(p);
    engine_->reconcile();
    engine_->reconcile();
    EXPECT_EQ(state("@default"), State::quarantined);
    EXPECT_EQ(scope("kcryptd"), "smt") << name_of(state("kcryptd")) << " " << reason("kcryptd");
}
TEST_F(EngineHeld, PinOnRecordWhilePodsUnknownAfterRestart) {
    ASSERT_TRUE(engine_->orders().pin("kcryptd", "cpu"));
    engine_->observe("x");
    engine_->reconcile();
    restart();
    topology_.warnings = {"CPU 3 is odd"};
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U) << "pods unknown forbids new writes";
}

TEST_F(EngineHeld, AForeignWordIsLeftWhereWeNeverWrote) {
    engine_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::cache}));
    engine_->reconcile();
    ASSERT_EQ(state("kcryptd"), State::as_planned);
    set_scope("kcryptd", "cpu");
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    engine_->reconcile();
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "cpu");
    EXPECT_EQ(asked(), 0U);
}

TEST_F(EngineHeld, AWordOfOurPastIsForeignWhenSomebodyElseWritesIt) {
    engine_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::cpu}));
    engine_->reconcile();
    engine_->set_policy(test::rule_for_all({ScopeWish::Kind::fixed, Scope::smt}));
    engine_->reconcile();
    ASSERT_EQ(scope("kcryptd"), "smt");
    set_scope("kcryptd", "cpu");
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    restart();
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "cpu");
}

TEST_F(EngineHeld, ABaselinePutBackBySomebodyElseStaysThroughARestart) {
    engine_->reconcile();
    ASSERT_EQ(scope("kcryptd"), "smt");
    set_scope("kcryptd", "default (cache)");
    engine_->reconcile();
    restart();
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::external);
    engine_->set_policy(test::rule_for_all());
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt") << "a reload finds the baseline and begins anew";
}

TEST_F(EngineHeld, TheWordOfATrialWhoseStrictnessSomebodyWroteGoesBackAtItsEnd) {
    const Arms arms = put_strict_candidate_in_place();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    engine_->look();
    EXPECT_EQ(test::switch_to(*engine_, "kcryptd", arms.reference).kind, Outcome::Kind::foreign);
    engine_->leave_slot({"kcryptd"});
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "default (cache) 0");
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(EngineHeld, WhoTookAnArmBackBeforeTheEndOfATrialIsNotOverwritten) {
    engine_->set_policy(test::rule_for_all(test::planned(), true));
    engine_->reconcile();
    ASSERT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "smt 1") << "applied without a trial";
    const Arms arms{{Scope::cache, "default", false}, {Scope::numa, "numa", false}};
    ASSERT_TRUE(engine_->enter_slot({"kcryptd"}).front());
    ASSERT_EQ(test::switch_to(*engine_, "kcryptd", arms.candidate).kind, Outcome::Kind::done);
    tree_.write(test::wq_path("kcryptd"), "default (cache)\n");
    engine_->leave_slot({"kcryptd"});
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(EngineHeld, AppliedIsSaidOfWhatIsApplied) {
    engine_->look();
    EXPECT_EQ(state("kcryptd"), State::waiting) << reason("kcryptd");
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::set);
}

TEST_F(EngineHeld, RevertOfAllWritesNothingWhileObserving) {
    engine_->observe("the baseline file is broken");
    engine_->reconcile();
    EXPECT_FALSE(engine_->orders().revert(std::nullopt));
    EXPECT_EQ(asked(), 0U);
}

}  // namespace
}  // namespace wq
