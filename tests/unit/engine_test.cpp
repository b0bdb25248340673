// SPDX-License-Identifier: LGPL-2.1-or-later
// What the tuner writes, when, and what it takes back.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <syslog.h>

#include "fake_rig.h"

namespace wq {
namespace {

using test::fixed;
using test::leave;
using test::rule_for_all;
using test::without;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class TunerTest : public test::Rig {
  protected:
    Policy managed() {
        Policy policy = rule_for_all();
        policy.default_scope.manage = true;
        return policy;
    }
    // A policy with its rules changed, taken into use.
    void use(const Policy& policy) {
        tuner_->set_policy(policy);
        tuner_->reconcile();
    }
};

TEST_F(TunerTest, AppliesThePlan) {
    tuner_->reconcile();
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd=smt", "writeback=smt"));
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(state("kcryptd"), State::applied);
    EXPECT_EQ(state("@default"), State::unmanaged);
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(log_.count(Event::applied), 2U);
    EXPECT_EQ(tuner_->writes(), 2U);
}

TEST_F(TunerTest, ReadsAndWritesNothingWhereNothingChanged) {
    tuner_->reconcile();
    const auto lines = log_.lines.size();
    for (int i = 0; i < 5; i++) tuner_->reconcile();
    see(topology_);
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(asked(), 2U);
    EXPECT_EQ(log_.lines.size(), lines);
}

TEST_F(TunerTest, WritesNothingWhereThePlanIsInPlace) {
    topology_ = test::machine({.sockets = 3, .cores = 4, .threads = 2});
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    EXPECT_FALSE(tree_.exists("run/wq-tuned/baseline.json"));
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(TunerTest, HasEveryBaselineOnDiskBeforeTheFirstWrite) {
    std::vector<std::map<std::string, BaselineEntry>> seen;
    files_->on_write = [&](const auto&, const auto&) {
        seen.push_back(on_disk());
        return 0;
    };
    tuner_->reconcile();
    ASSERT_EQ(seen.size(), 2U);
    for (const auto& entries : seen) {
        ASSERT_THAT(entries, ElementsAre(Key("kcryptd"), Key("writeback")));
        EXPECT_EQ(entries.at("kcryptd").scope, "default");
        EXPECT_EQ(entries.at("kcryptd").strict, false);
        EXPECT_THAT(entries.at("kcryptd").may_hold, ElementsAre("default", "smt"));
        EXPECT_EQ(entries.at("kcryptd").inode, target("kcryptd").now.inode);
    }
}

TEST_F(TunerTest, WritesNothingWhereTheBaselineCannotBeSaved) {
    tree_.remove("run/wq-tuned");
    tuner_->reconcile();
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(log_.count(Event::baseline_broken), 1U) << "said once";
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved"));
    tuner_->look();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved")) << "for who asks for the status";
    tree_.add(test::Dir("run/wq-tuned"));
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").scope, "default");
}

TEST_F(TunerTest, PutsBackEvenWhereTheBaselineCannotBeSaved) {
    tuner_->reconcile();
    tree_.add(test::Dir("sys/devices/virtual/workqueue", {test::workqueue("new", {.cpumask = "ffffff"})}));
    tree_.remove("run/wq-tuned");
    tuner_->reconcile();
    EXPECT_EQ(scope("new"), "default (cache)");
    tuner_->observe("switched off");
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TunerTest, KeepsTheFirstBaselineThroughChangesOfPlan) {
    tuner_->reconcile();
    use(rule_for_all(fixed(Scope::cpu)));
    EXPECT_EQ(scope("kcryptd"), "cpu");
    EXPECT_EQ(on_disk().at("kcryptd").scope, "default");
    EXPECT_THAT(on_disk().at("kcryptd").may_hold, ElementsAre("cpu")) << "and no earlier word";
    tuner_->restore_all();
    EXPECT_THAT(scope("kcryptd"), HasSubstr("default"));
}

TEST_F(TunerTest, PutsBackWhatTheRulesNoLongerWant) {
    tuner_->reconcile();
    use(rule_for_all(leave()));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(files_->writes(), 4U);
    EXPECT_EQ(log_.count(Event::restored), 2U);
}

TEST_F(TunerTest, WaitsInGuardAndPutsBackWhenUnjudgedIsTurnedOff) {
    Policy guard = rule_for_all();
    guard.apply_unjudged = false;
    use(guard);
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("waiting for a trial"));
    EXPECT_THAT(on_disk(), IsEmpty());
    use(rule_for_all());
    EXPECT_EQ(scope("kcryptd"), "smt");
    use(guard);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(TunerTest, ObservesAndPutsEverythingBack) {
    tuner_->reconcile();
    tuner_->observe("/etc/wq-tuned/disabled exists");
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(scope("writeback"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(reason("kcryptd"), "observing: /etc/wq-tuned/disabled exists");
    EXPECT_THAT(tuner_->summary(), HasSubstr("observing: /etc/wq-tuned/disabled exists"));
    const unsigned writes = files_->writes();
    tuner_->reconcile();
    EXPECT_EQ(files_->writes(), writes);
    tuner_->observe("");
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(TunerTest, ObservesByPolicy) {
    tuner_->reconcile();
    Policy observe = rule_for_all();
    observe.mode = Mode::observe;
    use(observe);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(tuner_->observing(), "mode is observe");
}

TEST_F(TunerTest, OnlyLooksWhenToldToLook) {
    tuner_->look();
    EXPECT_EQ(asked(), 0U);
    EXPECT_FALSE(tree_.exists("run/wq-tuned/baseline.json"));
    EXPECT_EQ(target("kcryptd").plan.planned, Scope::smt);
}

TEST_F(TunerTest, ALookTellsOfWhatWillBePutBack) {
    tuner_->reconcile();
    tuner_->set_policy(rule_for_all(leave()));
    tuner_->look();
    EXPECT_EQ(state("kcryptd"), State::applied);
    EXPECT_EQ(reason("kcryptd"), "left in force");
    EXPECT_EQ(scope("kcryptd"), "smt");
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TunerTest, RestoresAllAndForgets) {
    use(managed());
    tuner_->restore_all();
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

// ---- workqueues come and go

TEST_F(TunerTest, FollowsWorkqueuesThatComeAndGo) {
    tuner_->reconcile();
    tree_.add(
        test::Dir("sys/devices/virtual/workqueue", {test::workqueue("nvme-wq", {.cpumask = "ffffff"})}));
    tuner_->reconcile();
    EXPECT_EQ(scope("nvme-wq"), "smt");
    EXPECT_EQ(files_->writes(), 3U) << "the others were left";
    tree_.remove("sys/devices/virtual/workqueue/nvme-wq");
    tuner_->reconcile();
    EXPECT_FALSE(tuner_->targets().contains("nvme-wq"));
    EXPECT_THAT(on_disk(), ElementsAre(Key("kcryptd"), Key("writeback")));
}

TEST_F(TunerTest, TakesANewInodeForANewWorkqueue) {
    tuner_->reconcile();
    const ino_t before = on_disk().at("kcryptd").inode;
    recreate("kcryptd");
    set_scope("kcryptd", "numa");  // what this one happens to start with
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::applied) << reason("kcryptd");
    EXPECT_EQ(on_disk().at("kcryptd").scope, "numa");
    EXPECT_NE(on_disk().at("kcryptd").inode, before);
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(log_.count(Event::external), 0U);
}

TEST_F(TunerTest, DoesNotTakeWhatANewWorkqueueHoldsForOurs) {
    tuner_->reconcile();
    recreate("kcryptd");
    set_scope("kcryptd", "smt");
    restart();  // the baseline of the old one is still on disk
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    EXPECT_THAT(on_disk(), ElementsAre(Key("writeback")));
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "smt") << "its own";
}

TEST_F(TunerTest, OptsOutByUdev) {
    tuner_->reconcile();
    opted_out_.insert("kcryptd");
    tuner_->rules_changed();
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("WQ_TUNED_IGNORE"));
    EXPECT_EQ(scope("writeback"), "smt");
}

// At boot: its database has no entry for the device yet.
TEST_F(TunerTest, WritesNothingThatUdevHasNotProcessed) {
    unprocessed_ = {"kcryptd", "writeback"};
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(reason("kcryptd"), "udev has not processed it yet");
    EXPECT_FALSE(tuner_->pin("kcryptd", "smt"));
    EXPECT_FALSE(tuner_->may_try("kcryptd"));
    unprocessed_.clear();
    opted_out_ = {"kcryptd"};
    tuner_->rules_changed();
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_EQ(scope("writeback"), "smt");
    EXPECT_THAT(files_->asked, Each(HasSubstr("writeback")));
}

// Where it never gets there (a device from before our rules), the next tick finds that it has nothing to do.
TEST_F(TunerTest, AsksUdevAgainAtEachLookUntilItSays) {
    unprocessed_ = {"kcryptd"};
    tuner_->reconcile();
    unprocessed_.clear();
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
}

// A restart while udev is at work, or a storm of events.
TEST_F(TunerTest, WhatUdevHasNotProcessedKeepsWhatItHas) {
    tuner_->reconcile();
    unprocessed_ = {"kcryptd", "writeback"};
    tuner_->rules_changed();
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::applied) << "it said so before";
    restart();
    tuner_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(scope("kcryptd"), "smt");
    tuner_->observe("paused");
    tuner_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "taking back needs no word of udev's";
}

// ---- CPUs come and go

TEST_F(TunerTest, AReloadReadsTheTopologyAgain) {
    tuner_->reconcile();
    const auto reads = tuner_->topology_reads();
    tuner_->reconcile();
    EXPECT_EQ(tuner_->topology_reads(), reads);
    tuner_->set_policy(rule_for_all());
    tuner_->reconcile();
    EXPECT_EQ(tuner_->topology_reads(), reads + 1);
}

TEST_F(TunerTest, WritesNothingWhenCpusGoOffAndOn) {
    const Topology all = topology_;
    tuner_->reconcile();
    for (const char* offline : {"5", "12-23", "6-11,18-23"}) {
        see(without(all, offline));
        EXPECT_EQ(state("kcryptd"), State::applied) << offline;
        see(all);
    }
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(tuner_->topology_reads(), 7U);
    EXPECT_EQ(log_.count(Event::pods_unknown), 0U);
}

TEST_F(TunerTest, WritesNothingWhilePodsAreUnknown) {
    const Topology all = topology_;
    topology_ = without(all, "12-23");
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_EQ(reason("kcryptd"), "pods unknown: CPUs 12-23 are offline");
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    tuner_->reconcile();
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    see(all);
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(TunerTest, TakesNothingBackWhenPodsBecomeUnknown) {
    tuner_->reconcile();
    Topology plugged = topology_;
    plugged.present = CpuSet::range(0, 24);
    see(plugged);
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(state("kcryptd"), State::applied);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("pods unknown"));
    restart();
    tuner_->reconcile();
    EXPECT_EQ(files_->writes(), 0U) << "nor after a restart";
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").scope, "default");
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TunerTest, LeavesEverythingWhileTheTopologyCannotBeRead) {
    topology_error_ = "no sysfs";
    tuner_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("no topology: no sysfs"));
    topology_error_ = "";
    tuner_->reconcile();  // tries again by itself
    EXPECT_EQ(scope("kcryptd"), "smt");
}

}  // namespace
}  // namespace wq
