// SPDX-License-Identifier: LGPL-2.1-or-later
// What the engine writes, when it writes, and what it restores.
#include "targets/engine.h"

#include <gmock/gmock.h>
#include <syslog.h>
#include <nlohmann/json.hpp>

#include "fake_rig.h"
#include "service/status.h"

namespace wq {
namespace {

using test::fixed;
using test::leave;
using test::rule_for_all;
using test::without;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineTest : public test::Rig {};

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

// ---- workqueues come and go

// At boot the udev database has no entry for the device yet.
TEST_F(EngineTest, WritesNothingThatUdevHasNotProcessed) {
    unprocessed_ = {"kcryptd", "writeback"};
    engine_->reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(reason("kcryptd"), "udev has not processed it yet");
    EXPECT_FALSE(engine_->pin("kcryptd", "smt"));
    EXPECT_TRUE(engine_->ask("kcryptd", Use::compare));
    unprocessed_ = {"writeback"};
    engine_->reconcile();  // udev is asked again at each look
    EXPECT_EQ(scope("kcryptd"), "smt");
    unprocessed_.clear();
    opted_out_ = {"kcryptd"};
    engine_->changed(Udev::Change::workqueue);
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("WQ_TUNED_IGNORE"));
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
        EXPECT_EQ(engine_->inventory().topology_reads, cpus ? 2U : 1U);
        EXPECT_EQ(engine_->inventory().strict_in_doubt, in_doubt);
        EXPECT_EQ(state("kcryptd"), rules ? State::unmanaged : State::set);
    }
}

// ---- CPUs come and go

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

// ---- @default, its followers, and strictness

class EngineDefault : public test::Rig {
  protected:
    [[nodiscard]] std::string reason_told() const {
        return status_json(*engine_, nullptr, "running")["targets"][1]["reason"].dump();
    }
};

// A workqueue that must be left begins to follow @default, which an arm of a slot or a pin has moved.
// @default goes back, and stays until a reload.
TEST_F(EngineDefault, StaysOnceAFollowerMustBeLeft) {
    Policy policy = rule_for_all({});
    policy.default_scope.manage = true;
    policy.rules.insert(policy.rules.begin(), {{"left*"}, leave(), {}, {"rules.toml", 3}});
    for (const bool pinned : {false, true}) {
        SCOPED_TRACE(pinned);
        use(policy);
        if (pinned) {
            ASSERT_TRUE(engine_->pin("@default", "smt"));
        } else {
            ASSERT_TRUE(engine_->enter_slot({"@default"}).front());
            ASSERT_EQ(test::switch_to(*engine_, "@default", {Scope::smt, "smt", {}}).kind,
                      Outcome::Kind::done);
        }
        EXPECT_EQ(scope("kcryptd"), "default (smt)");
        tree_.add(
            test::Dir("sys/devices/virtual/workqueue", {test::workqueue("left-1", {.cpumask = "ffffff"})}));
        engine_->reconcile();
        if (!pinned) engine_->leave_slot({"@default"});
        EXPECT_EQ(scope("left-1"), "default (cache)");
        EXPECT_EQ(state("@default"), State::reverted);
        EXPECT_THAT(reason("@default"), HasSubstr("`left-1` (left by the rule at rules.toml:3)"));
        EXPECT_THAT(reason("@default"), HasSubstr("before a reload"));
        EXPECT_THAT(engine_->pin("@default", "smt").error().text, HasSubstr("left-1"));
        EXPECT_THAT(engine_->ask("@default", Use::compare)->why, HasSubstr("left-1"));
        tree_.remove("sys/devices/virtual/workqueue/left-1");
        restart();
        engine_->reconcile();
        EXPECT_EQ(state("@default"), State::reverted) << "mounts must not make it flap";
        use(policy);
        EXPECT_EQ(state("@default"), State::waiting);
    }
}

TEST_F(EngineDefault, WritesWhoDiffersFirstAndThenTheDefault) {
    Policy policy = managed();
    policy.rules.insert(policy.rules.begin(), {{"kcryptd"}, fixed(Scope::cpu), {}, {}});
    policy.rules.insert(policy.rules.begin(), {{"writeback"}, leave(), {}, {}});
    use(policy);
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd=cpu", "@default=smt"));
    EXPECT_EQ(scope("writeback"), "default (smt)");
    EXPECT_EQ(state("writeback"), State::leave);
    use(rule_for_all(leave()));
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

// When a CPU comes online, the kernel resets the workers of strict workqueues to all CPUs
// (kernel/workqueue.c, restore_unbound_workers_cpumask()).
TEST_F(EngineDefault, ShowsStrictnessThatACpuMayHaveLiftedAndDoesNotCureIt) {
    use(rule_for_all(test::planned(), true));
    const Topology all = topology_;
    see(test::without(all, "3"));
    EXPECT_THAT(reason_told(), testing::Not(HasSubstr("strict, but")));
    const auto before = asked();
    see(all);
    EXPECT_THAT(reason_told(), HasSubstr("strict, but a CPU came online or the machine was suspended since"));
    EXPECT_EQ(asked(), before);
}

TEST_F(EngineDefault, LeavesTheWordWhereOnlyStrictnessIsWanted) {
    use(rule_for_all(fixed(Scope::cache), true));
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd strict=1", "writeback strict=1"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    use(rule_for_all(leave()));
    EXPECT_EQ(strict("kcryptd"), "0");
    EXPECT_THAT(on_disk(), IsEmpty());
}

}  // namespace
}  // namespace wq
