// SPDX-License-Identifier: LGPL-2.1-or-later
// What the engine writes, when it writes, and what it restores.
#include "targets/engine.h"

#include <gmock/gmock.h>
#include <syslog.h>

#include "fake_rig.h"

namespace wq {
namespace {

using test::fixed;
using test::leave;
using test::rule_for_all;
using test::without;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

class EngineTest : public test::Rig {};

TEST_F(EngineTest, AppliesThePlan) {
    engine_->reconcile();
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd=smt", "writeback=smt"));
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_EQ(state("@default"), State::unmanaged);
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(log_.count(Event::applied), 2U);
    EXPECT_EQ(engine_->writes(), 2U);
}

TEST_F(EngineTest, ReadsAndWritesNothingWhereNothingChanged) {
    engine_->reconcile();
    const auto lines = log_.lines.size();
    for (int i = 0; i < 5; i++) engine_->reconcile();
    see(topology_);
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(asked(), 2U);
    EXPECT_EQ(log_.lines.size(), lines);
}

TEST_F(EngineTest, WritesNothingWhereThePlanIsInPlace) {
    topology_ = test::machine({.sockets = 3, .cores = 4, .threads = 2});
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    EXPECT_FALSE(tree_.exists("run/wq-tuned/owned.json"));
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(EngineTest, WritesNothingWhereTheBaselineCannotBeSaved) {
    no_state_folder();
    engine_->reconcile();
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(log_.count(Event::baseline_broken), 1U) << "said once";
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved"));
    engine_->look();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved")) << "for who asks for the status";
    tree_.remove("run/wq-tuned");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
}

TEST_F(EngineTest, PutsBackEvenWhereTheBaselineCannotBeSaved) {
    engine_->reconcile();
    tree_.add(test::Dir("sys/devices/virtual/workqueue", {test::workqueue("new", {.cpumask = "ffffff"})}));
    no_state_folder();
    engine_->reconcile();
    EXPECT_EQ(scope("new"), "default (cache)");
    engine_->observe("switched off");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

// Health reads the kernel's counts then, because a write zeroes them.
TEST_F(EngineTest, TellsThatItIsAboutToWriteOnlyWhereItWrites) {
    std::vector<std::size_t> when;  // writes until then
    files_->about_to_write = [&] { when.push_back(asked()); };
    engine_->reconcile();
    EXPECT_THAT(when, ElementsAre(0, 1));
    engine_->reconcile();
    EXPECT_EQ(when.size(), 2U) << "nothing is written";
    use(rule_for_all(leave()));
    EXPECT_THAT(when, ElementsAre(0, 1, 2, 3));
    when.clear();
    put_strict_candidate_in_place();
    ASSERT_FALSE(when.empty()) << "an arm of a slot";
    EXPECT_EQ(when.front(), 4U);
}

TEST_F(EngineTest, WithAutoItWaitsAndWhatWasSetFirstGoesBack) {
    use(rule_for_all({}));
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("waiting for a comparison"));
    EXPECT_THAT(on_disk(), IsEmpty());
    use(rule_for_all());
    EXPECT_EQ(scope("kcryptd"), "smt");
    use(rule_for_all({}));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(EngineTest, ObservesAndPutsEverythingBack) {
    engine_->reconcile();
    engine_->observe("/etc/wq-tuned/disabled exists");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(scope("writeback"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("observing: /etc/wq-tuned/disabled exists; plan: "));
    EXPECT_THAT(engine_->summary(), HasSubstr("observing: /etc/wq-tuned/disabled exists"));
    const unsigned writes = files_->writes();
    engine_->reconcile();
    EXPECT_EQ(files_->writes(), writes);
    engine_->observe("");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(EngineTest, ALookTellsOfWhatWillBePutBack) {
    engine_->reconcile();
    engine_->set_policy(rule_for_all(leave()));
    engine_->look();
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_EQ(reason("kcryptd"), "left in force");
    EXPECT_EQ(scope("kcryptd"), "smt");
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

// ---- workqueues come and go

TEST_F(EngineTest, FollowsWorkqueuesThatComeAndGo) {
    engine_->reconcile();
    tree_.add(
        test::Dir("sys/devices/virtual/workqueue", {test::workqueue("nvme-wq", {.cpumask = "ffffff"})}));
    engine_->reconcile();
    EXPECT_EQ(scope("nvme-wq"), "smt");
    EXPECT_EQ(files_->writes(), 3U) << "the others were left";
    tree_.remove("sys/devices/virtual/workqueue/nvme-wq");
    engine_->reconcile();
    EXPECT_FALSE(engine_->targets().contains("nvme-wq"));
    EXPECT_THAT(on_disk(), ElementsAre(Key("kcryptd"), Key("writeback")));
}

TEST_F(EngineTest, OptsOutByUdev) {
    engine_->reconcile();
    opted_out_.insert("kcryptd");
    engine_->changed(Udev::Change::workqueue);
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("WQ_TUNED_IGNORE"));
    EXPECT_EQ(scope("writeback"), "smt");
}

// At boot the udev database has no entry for the device yet.
TEST_F(EngineTest, WritesNothingThatUdevHasNotProcessed) {
    unprocessed_ = {"kcryptd", "writeback"};
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(reason("kcryptd"), "udev has not processed it yet");
    EXPECT_FALSE(engine_->pin("kcryptd", "smt"));
    EXPECT_FALSE(engine_->may_try("kcryptd"));
    unprocessed_ = {"writeback"};
    engine_->reconcile();  // udev is asked again at each look
    EXPECT_EQ(scope("kcryptd"), "smt");
    unprocessed_.clear();
    opted_out_ = {"kcryptd"};
    engine_->changed(Udev::Change::workqueue);
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_EQ(scope("writeback"), "smt");
}

// The daemon restarts while udev is busy, or there is a storm of events.
TEST_F(EngineTest, WhatUdevHasNotProcessedKeepsWhatItHas) {
    engine_->reconcile();
    unprocessed_ = {"kcryptd", "writeback"};
    engine_->changed(Udev::Change::workqueue);
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::set) << "it said so before";
    restart();
    engine_->reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(scope("kcryptd"), "smt");
    engine_->observe("paused");
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "taking back needs no word of udev's";
}

// ---- events of udev

TEST_F(EngineTest, EachEventHasWhatItIsAboutLookedAtAgain) {
    using Change = Udev::Change;
    struct Case {
        Change change;
        bool cpus, in_doubt, rules;
    };
    for (const auto& [change, cpus, in_doubt, rules] :
         {Case{Change::workqueue, false, false, true}, Case{Change::cpu, true, false, false},
          Case{Change::cpu_online, true, true, false}, Case{Change::lost, true, true, true}}) {
        opted_out_.clear();
        restart();
        engine_->reconcile();
        opted_out_ = {"kcryptd"};
        engine_->changed(change);
        engine_->reconcile();
        EXPECT_EQ(engine_->inventory().topology_reads(), cpus ? 2U : 1U);
        EXPECT_EQ(engine_->inventory().strict_in_doubt(), in_doubt);
        EXPECT_EQ(state("kcryptd"), rules ? State::unmanaged : State::set);
    }
}

// ---- CPUs come and go

TEST_F(EngineTest, AReloadReadsTheTopologyAgain) {
    engine_->reconcile();
    const auto reads = engine_->inventory().topology_reads();
    engine_->reconcile();
    EXPECT_EQ(engine_->inventory().topology_reads(), reads);
    engine_->set_policy(rule_for_all());
    engine_->reconcile();
    EXPECT_EQ(engine_->inventory().topology_reads(), reads + 1);
}

TEST_F(EngineTest, WritesNothingWhenCpusGoOffAndOn) {
    const Topology all = topology_;
    engine_->reconcile();
    for (const char* offline : {"5", "12-23", "6-11,18-23"}) {
        see(without(all, offline));
        EXPECT_EQ(state("kcryptd"), State::set) << offline;
        see(all);
    }
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(engine_->inventory().topology_reads(), 7U);
    EXPECT_EQ(log_.count(Event::pods_unknown), 0U);
}

TEST_F(EngineTest, WritesNothingWhilePodsAreUnknown) {
    const Topology all = topology_;
    topology_.first = CpuSet::range(0, 11);  // the others came later
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("pods unknown: CPUs that were not usable"));
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    engine_->reconcile();
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    see(without(all, "12-23"));
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(EngineTest, TakesNothingBackWhenPodsBecomeUnknown) {
    engine_->reconcile();
    Topology plugged = topology_;
    plugged.online = plugged.present = plugged.possible = CpuSet::range(0, 24);
    plugged.first = topology_.online;
    see(plugged);
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("pods unknown"));
    restart();
    engine_->reconcile();
    EXPECT_EQ(files_->writes(), 0U) << "nor after a restart";
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(EngineTest, LeavesEverythingWhileTheTopologyCannotBeRead) {
    topology_error_ = "no sysfs";
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("no topology: no sysfs"));
    topology_error_ = "";
    engine_->reconcile();  // reads the topology again without an event
    EXPECT_EQ(scope("kcryptd"), "smt");
}

}  // namespace
}  // namespace wq
