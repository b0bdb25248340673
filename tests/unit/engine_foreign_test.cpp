// SPDX-License-Identifier: LGPL-2.1-or-later
// Other writers of the same files, including daemons that died; targets that are held. The walk of
// ownership_property_test.cpp has the cases of who wrote what when; here is what it does not see.
#include <gmock/gmock.h>
#include <syslog.h>

#include <cerrno>

#include "fake_rig.h"
#include "targets/engine.h"

namespace wq {
namespace {

using test::fixed;
using test::rule_for_all;
using test::wq_path;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class Foreign : public test::Rig {
  protected:
    Foreign() { engine_->set_policy(kcryptd_only()); }
};

// ---- other writers

class OtherWriters : public Foreign {
  protected:
    OtherWriters() { reconcile(1); }
    // In one reconcile(), FILE of kcryptd does not contain a number.
    void misread_once(const std::string& file) {
        const std::string text = tree_.read(test::wq_path("kcryptd", file));
        tree_.write(test::wq_path("kcryptd", file), "?\n");
        reconcile(1);
        tree_.write(test::wq_path("kcryptd", file), text);
        reconcile(1);
    }
};

TEST_F(OtherWriters, AreNotWhoeverMadeAFileUnreadableForAMoment) {
    misread_once("per_cpu");
    EXPECT_EQ(log_.count(Event::external), 0U);
    EXPECT_EQ(state("kcryptd"), State::set) << reason("kcryptd");
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(OtherWriters, AreNotBehindAStrictnessThatWasNotRead) {
    Policy policy = kcryptd_only();
    policy.rules[0].strict = true;
    engine_->set_policy(policy);
    reconcile(1);
    misread_once("max_active");
    EXPECT_EQ(log_.count(Event::external), 0U);
    EXPECT_EQ(strict("kcryptd"), "1");
}

TEST_F(OtherWriters, AreLeftAloneUntilAReload) {
    set_scope("kcryptd", "numa");
    reconcile(3);
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("'numa'"));
    EXPECT_EQ(log_.count(Event::external), 1U);
    EXPECT_EQ(log_.lines.back().text,
              "kcryptd: holds 'numa', which an external writer wrote; it is left alone until 'default' (the "
              "baseline) is back and the policy is reloaded");
    set_scope("kcryptd", "default (cache)");  // back at the baseline: still external
    reconcile(2);
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(files_->writes(), 1U);
    engine_->set_policy(kcryptd_only());
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::set);
}

TEST_F(OtherWriters, OfTheStrictnessAreKnownAsSuchAfterARestart) {
    Policy policy = kcryptd_only();
    policy.rules[0].strict = true;
    engine_->set_policy(policy);
    reconcile(1);
    for (const bool noticed : {true, false}) {
        tree_.write(wq_path("kcryptd", "affinity_strict"), "0\n");
        if (noticed) reconcile(1);
        restart();
        reconcile(1);
        EXPECT_EQ(state("kcryptd"), State::external);
        EXPECT_THAT(reason("kcryptd"), HasSubstr("'not strict'"));
        EXPECT_EQ(strict("kcryptd"), "0");
        engine_->set_policy(policy);
        reconcile(1);
        ASSERT_EQ(strict("kcryptd"), "1");
    }
}

TEST_F(OtherWriters, OfTheDefaultMoveItsFollowersAndNotUs) {
    Policy policy = rule_for_all();
    policy.default_scope.manage = true;
    policy.default_scope.wish = test::planned();
    engine_->set_policy(policy);
    reconcile(1);
    ASSERT_EQ(default_scope(), "smt");
    tree_.write(test::kDefaultPath, "system\n");
    set_scope("kcryptd", "default (system)");
    set_scope("writeback", "default (system)");
    reconcile(2);
    EXPECT_EQ(default_scope(), "system");
    EXPECT_EQ(state("@default"), State::external);
    EXPECT_EQ(state("kcryptd"), State::set) << "which its rule still covers";
    engine_->restore_all();
    EXPECT_EQ(default_scope(), "system");
}

// ---- daemons that died

using DeadDaemons = Foreign;

TEST_F(DeadDaemons, AdoptsWhatAnEarlierDaemonLeft) {
    reconcile(1);
    const auto before = on_disk();
    restart();
    reconcile(2);
    EXPECT_EQ(files_->writes(), 0U);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_EQ(on_disk(), before) << "a word that we wrote must not become the baseline";
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(DeadDaemons, ForgetsEntriesOfWorkqueuesThatWentAwayMeanwhile) {
    reconcile(1);
    tree_.remove("sys/devices/virtual/workqueue/kcryptd");
    restart();
    reconcile(1);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(log_.at_least(LOG_WARNING), 0U);
}

// ---- what is held, and the effect on other targets

class EngineHeld : public test::Rig {};

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
    ASSERT_TRUE(engine_->pin("kcryptd", "cpu"));
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

}  // namespace
}  // namespace wq
