// SPDX-License-Identifier: LGPL-2.1-or-later
// Other writers of the same files, including daemons that died.
#include <gmock/gmock.h>
#include <syslog.h>

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

TEST_F(OtherWriters, AreStillOthersAfterAReloadWhileTheirWordIsThere) {
    set_scope("kcryptd", "numa");
    reconcile(1);
    engine_->set_policy(kcryptd_only());
    reconcile(2);
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(OtherWriters, AreNoticedWhereTheyWriteOurBaseline) {
    set_scope("kcryptd", "default (cache)");
    reconcile(3);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(files_->writes(), 1U);
}

TEST_F(OtherWriters, AreNoticedWhereTheyWriteAnEarlierWordOfOurs) {
    engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
    reconcile(1);
    set_scope("kcryptd", "smt");
    reconcile(2);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(state("kcryptd"), State::external);
}

// We wrote smt, then cpu after a reload. A smt that appears later is of an external writer.
TEST_F(OtherWriters, ThatWriteAnEarlierWordOfOursKeepItWhenWeStop) {
    engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
    reconcile(1);
    ASSERT_EQ(scope("kcryptd"), "cpu");
    EXPECT_THAT(on_disk().at("kcryptd").main.claim, ElementsAre("cpu")) << "on disk as in memory";
    set_scope("kcryptd", "smt");
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(OtherWriters, ThatWriteWhileWeAreStoppedKeepIt) {
    engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
    reconcile(1);
    for (const char* word : {"smt", "default (cache)", "numa"}) {
        engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
        set_scope("kcryptd", "default (cache)");
        engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
        reconcile(1);
        ASSERT_EQ(scope("kcryptd"), "cpu") << word;
        engine_->keep_all();
        set_scope("kcryptd", word);
        restart();
        reconcile(2);
        EXPECT_EQ(scope("kcryptd"), word);
        EXPECT_EQ(state("kcryptd"), State::external) << word;
    }
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

TEST_F(OtherWriters, AreNoticedByALook) {
    set_scope("kcryptd", "numa");
    engine_->look();
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(OtherWriters, KeepTheirWordWhenWeStopAndLeaveNoEntry) {
    set_scope("kcryptd", "numa");
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(OtherWriters, KeepTheirWordWhenWeObserveOrLeave) {
    set_scope("kcryptd", "numa");
    engine_->observe("switched off");
    reconcile(2);
    EXPECT_EQ(scope("kcryptd"), "numa");
}

TEST_F(OtherWriters, BetweenOurLookAndOurWriteAreFoundByTheRead) {
    engine_->set_policy(kcryptd_only(fixed(Scope::cpu)));
    int reads = 0;
    files_->on_read = [&](const auto&) {
        if (++reads == 1) set_scope("kcryptd", "numa");
        return 0;
    };
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(files_->writes(), 1U);
}

TEST_F(OtherWriters, BeforeWeEverWroteAreTheBaseline) {
    engine_->restore_all();
    set_scope("kcryptd", "numa");
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "numa");
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

TEST_F(DeadDaemons, PutsBackWhatAnEarlierDaemonLeftWhereItIsNotWantedAnyMore) {
    reconcile(1);
    restart();
    engine_->set_policy(rule_for_all(test::leave()));
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(DeadDaemons, SeesAForeignWordThatWasWrittenWhileNoDaemonRan) {
    reconcile(1);
    set_scope("kcryptd", "numa");
    restart();
    reconcile(2);
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default") << "not taken for a baseline";
}

TEST_F(DeadDaemons, AppliesWhatADeadDaemonOnlyAnnounced) {
    files_->on_write = [&](const auto&, const auto&) -> int { throw std::runtime_error("kill -9"); };
    EXPECT_THROW(engine_->reconcile(), std::runtime_error);
    EXPECT_THAT(on_disk(), ElementsAre(Key("kcryptd")));
    restart();
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
}

TEST_F(DeadDaemons, ForgetsEntriesOfWorkqueuesThatWentAwayMeanwhile) {
    reconcile(1);
    tree_.remove("sys/devices/virtual/workqueue/kcryptd");
    restart();
    reconcile(1);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(log_.at_least(LOG_WARNING), 0U);
}

}  // namespace
}  // namespace wq
