// SPDX-License-Identifier: LGPL-2.1-or-later
// What the engine writes, when it writes, and what it restores.
#include "targets/engine.h"

#include <gmock/gmock.h>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "fake_rig.h"
#include "service/status.h"

namespace wq {
namespace {

using test::leave;
using test::rule_for_all;
using test::without;
using test::wq_path;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineTest : public test::Rig {};

TEST_F(EngineTest, WritesNothingWhereThePlanIsInPlace) {
    topology_ = test::machine({.sockets = 3, .cores = 4, .threads = 2});
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    EXPECT_FALSE(tree_.exists("run/wq-tuned/owned.json"));
    EXPECT_TRUE(log_.lines.empty());
}

TEST_F(EngineTest, WritesNothingWhereTheBaselineCannotBeSaved) {
    no_state_folder();
    parts_->engine.reconcile();
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(log_.count(Event::baseline_broken), 1U) << "said once";
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved"));
    parts_->engine.look();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("baseline cannot be saved")) << "for who asks for the status";
    tree_.remove("run/wq-tuned");
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
}

TEST_F(EngineTest, PutsBackEvenWhereTheBaselineCannotBeSaved) {
    parts_->engine.reconcile();
    add_workqueue("new");
    no_state_folder();
    parts_->engine.reconcile();
    EXPECT_EQ(scope("new"), "default (cache)");
    parts_->targets.observe("switched off");
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

// Health reads the kernel's counts then, because a write zeroes them.
TEST_F(EngineTest, TellsThatItIsAboutToWriteOnlyWhereItWrites) {
    std::vector<std::size_t> when;  // writes until then
    files_->about_to_write = [&] { when.push_back(asked()); };
    parts_->engine.reconcile();
    EXPECT_THAT(when, ElementsAre(0, 1));
    parts_->engine.reconcile();
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
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(reason("kcryptd"), "udev has not processed it yet");
    EXPECT_FALSE(parts_->orders.pin("kcryptd", "smt"));
    EXPECT_TRUE(ask(parts_->targets, "kcryptd", Use::compare));
    unprocessed_ = {"writeback"};
    parts_->engine.reconcile();  // udev is asked again at each look
    EXPECT_EQ(scope("kcryptd"), "smt");
    unprocessed_.clear();
    opted_out_ = {"kcryptd"};
    parts_->engine.changed(Udev::Change::workqueue);
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::unmanaged);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("WQ_TUNED_IGNORE"));
    EXPECT_EQ(scope("writeback"), "smt");
}

// The daemon restarts while udev is busy, or there is a storm of events.
TEST_F(EngineTest, WhatUdevHasNotProcessedKeepsWhatItHas) {
    parts_->engine.reconcile();
    unprocessed_ = {"kcryptd", "writeback"};
    parts_->engine.changed(Udev::Change::workqueue);
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::set) << "it said so before";
    restart();
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(scope("kcryptd"), "smt");
    parts_->targets.observe("paused");
    parts_->engine.reconcile();
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
        parts_->engine.reconcile();
        opted_out_ = {"kcryptd"};
        parts_->engine.changed(change);
        parts_->engine.reconcile();
        EXPECT_EQ(parts_->targets.snapshot().topology_reads, cpus ? 2U : 1U);
        EXPECT_EQ(parts_->targets.snapshot().strict_in_doubt, in_doubt);
        EXPECT_EQ(state("kcryptd"), rules ? State::unmanaged : State::set);
    }
}

// ---- CPUs come and go

TEST_F(EngineTest, WritesNothingWhilePodsAreUnknown) {
    const Topology all = topology_;
    topology_.first = CpuSet::range(0, 11);  // the others came later
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::leave);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("pods unknown: CPUs that were not usable"));
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    parts_->engine.reconcile();
    EXPECT_EQ(log_.count(Event::pods_unknown), 1U);
    see(without(all, "12-23"));
    EXPECT_EQ(scope("kcryptd"), "smt");
}

TEST_F(EngineTest, TakesNothingBackWhenPodsBecomeUnknown) {
    parts_->engine.reconcile();
    Topology plugged = topology_;
    plugged.online = plugged.present = plugged.possible = CpuSet::range(0, 24);
    plugged.first = topology_.online;
    see(plugged);
    EXPECT_EQ(files_->writes(), 2U);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("pods unknown"));
    restart();
    parts_->engine.reconcile();
    EXPECT_EQ(files_->writes(), 0U) << "nor after a restart";
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
    parts_->engine.restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(EngineTest, LeavesEverythingWhileTheTopologyCannotBeRead) {
    topology_error_ = "no sysfs";
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("no topology: no sysfs"));
    topology_error_ = "";
    parts_->engine.reconcile();  // reads the topology again without an event
    EXPECT_EQ(scope("kcryptd"), "smt");
}

// ---- @default, its followers, and strictness

class EngineDefault : public test::Rig {
  protected:
    [[nodiscard]] std::string reason_told() const {
        return status_json(parts_->engine, nullptr, "running")["targets"][1]["reason"].dump();
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
            ASSERT_TRUE(parts_->orders.pin("@default", "smt"));
        } else {
            ASSERT_TRUE(parts_->slots.enter({"@default"}).front());
            ASSERT_EQ(test::switch_to(*parts_, "@default", {Scope::smt, false, {}}).kind,
                      Outcome::Kind::done);
        }
        EXPECT_EQ(scope("kcryptd"), "default (smt)");
        add_workqueue("left-1");
        parts_->engine.reconcile();
        if (!pinned) parts_->slots.leave({"@default"});
        EXPECT_EQ(scope("left-1"), "default (cache)");
        EXPECT_EQ(state("@default"), State::reverted);
        EXPECT_THAT(reason("@default"), HasSubstr("`left-1` (left by the rule at rules.toml:3)"));
        EXPECT_THAT(reason("@default"), HasSubstr("before a reload"));
        EXPECT_THAT(parts_->orders.pin("@default", "smt").error().text, HasSubstr("left-1"));
        EXPECT_THAT(ask(parts_->targets, "@default", Use::compare)->why, HasSubstr("left-1"));
        tree_.remove("sys/devices/virtual/workqueue/left-1");
        restart();
        parts_->engine.reconcile();
        EXPECT_EQ(state("@default"), State::reverted) << "mounts must not make it flap";
        use(policy);
        EXPECT_EQ(state("@default"), State::waiting);
    }
}

TEST_F(EngineDefault, WritesWhoDiffersFirstAndThenTheDefault) {
    Policy policy = managed();
    policy.rules.insert(policy.rules.begin(), {{"kcryptd"}, test::fixed(Scope::cpu), {}, {}});
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

// ---- kernels that refuse a write or store another word, other writers, what is held

class EngineFaults : public test::Rig {
  protected:
    EngineFaults() { parts_->engine.set_policy(kcryptd_only()); }
    // The next writes fail with CODES, one after another; later writes succeed.
    void fail_writes(std::vector<int> codes) {
        files_->on_write = [codes, next = std::size_t{0}](const auto&, const auto&) mutable {
            return next < codes.size() ? codes[next++] : 0;
        };
    }
};

// ---- files that cannot be read for a while

class EngineUnread : public EngineFaults, public testing::WithParamInterface<std::string> {
  protected:
    void hide() {
        text_ = tree_.read(GetParam());
        tree_.remove(GetParam());
        tree_.add(test::Dir(GetParam(), {}));  // can be opened, but not read
    }
    void show() {
        tree_.remove(GetParam());
        tree_.write(GetParam(), text_);
    }
    std::string text_;
};

TEST_P(EngineUnread, LeavesTheSettingWhereItIs) {
    reconcile(1);
    ASSERT_EQ(state("kcryptd"), State::set);
    hide();
    reconcile(5);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_TRUE(target("kcryptd").unread);
    EXPECT_LE(log_.lines.size(), 2U) << "the setting, and once that something cannot be read";
    show();
    reconcile(1);
    EXPECT_FALSE(target("kcryptd").unread);
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd=smt"));
}

TEST_P(EngineUnread, LeavesWhatAnEarlierLifeHasSet) {
    reconcile(1);
    hide();
    restart();
    parts_->engine.set_policy(kcryptd_only());
    reconcile(2);
    EXPECT_THAT(on_disk(), testing::Contains(testing::Key("kcryptd")));
    show();
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_THAT(files_->asked, IsEmpty());
}

TEST_P(EngineUnread, OfAnEarlierLifeHearsTheOrderToRevertAll) {
    reconcile(1);
    hide();
    restart();
    parts_->engine.set_policy(kcryptd_only());
    reconcile(1);
    ASSERT_TRUE(parts_->orders.revert(std::nullopt));
    show();
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_THAT(scope("kcryptd"), testing::StartsWith("default"));
}

INSTANTIATE_TEST_SUITE_P(Each, EngineUnread,
                         testing::Values(wq_path("kcryptd", "max_active"), wq_path("kcryptd", "cpumask"),
                                         wq_path("kcryptd", "affinity_strict"), wq_path("kcryptd", "per_cpu"),
                                         "sys/devices/virtual/workqueue/cpumask"));

// ---- refusals

TEST_F(EngineFaults, SaysAPermanentErrorOnceAndTriesAgainAfterAReload) {
    fail_writes({EINVAL, EINVAL, EINVAL, EINVAL});
    reconcile(5);
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd=smt"));
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("Invalid argument"));
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_FALSE(parts_->engine.wants_retry());
    EXPECT_THAT(on_disk(), IsEmpty()) << "nothing of ours is there";
    fail_writes({EBUSY, EBUSY});
    parts_->engine.set_policy(kcryptd_only());
    reconcile(3);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_FALSE(parts_->engine.wants_retry());
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
}

TEST_F(EngineFaults, TriesABusyKernelThreeTimesThenQuarantines) {
    fail_writes({EBUSY, ENOMEM, EAGAIN, EBUSY, EBUSY});
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("try 1 of 3"));
    parts_->engine.look();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("about to be tried again"));
    EXPECT_TRUE(parts_->engine.wants_retry());
    EXPECT_THAT(log_.lines, IsEmpty());
    reconcile(1);
    EXPECT_TRUE(parts_->engine.wants_retry());
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_FALSE(parts_->engine.wants_retry());
    reconcile(3);
    EXPECT_EQ(asked(), 3U);
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
}

TEST_F(EngineFaults, TriesABaselineThatCannotBePutBackThreeTimesAndAgainAtTheEnd) {
    reconcile(1);
    fail_writes({EPERM, EPERM, EPERM});
    parts_->targets.observe("switched off");
    reconcile(6);
    EXPECT_EQ(asked(), 4U);
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("not put back to 'default'"));
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines.back().fields, ElementsAre(testing::Pair("WQ_NAME", "kcryptd"),
                                                      testing::Pair("ERRNO", std::to_string(EPERM))));
    EXPECT_THAT(on_disk(), ElementsAre(testing::Key("kcryptd")));
    parts_->engine.restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(EngineFaults, WhatIsToStayAgainIsPutBackAtOnceTheNextTime) {
    reconcile(1);
    fail_writes({EPERM, EPERM, EPERM});
    parts_->targets.observe("switched off");
    reconcile(3);
    ASSERT_EQ(state("kcryptd"), State::quarantined);
    parts_->targets.observe("");
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::set);
    parts_->engine.look();
    EXPECT_EQ(state("kcryptd"), State::set) << reason("kcryptd");
    parts_->targets.observe("switched off");
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(EngineFaults, OneNameThatJsonCannotHoldDoesNotStopTheOthers) {
    add_workqueue("caf\xe9");
    parts_->engine.set_policy(rule_for_all());
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(scope("caf\xe9"), "default (cache)") << "its baseline cannot be kept";
}

// ---- other writers of the same files, targets that are held. The walk of ownership_property_test.cpp has
// the cases of who wrote what when; here is what it does not see.

// Files that do not contain a number for a moment.
TEST_F(EngineFaults, WhoeverMakesAFileUnreadableForAMomentIsNoWriter) {
    Policy policy = kcryptd_only();
    policy.rules[0].strict = true;
    parts_->engine.set_policy(policy);
    reconcile(1);
    for (const char* file : {"per_cpu", "max_active"}) {
        const std::string text = tree_.read(wq_path("kcryptd", file));
        tree_.write(wq_path("kcryptd", file), "?\n");
        reconcile(1);
        tree_.write(wq_path("kcryptd", file), text);
        reconcile(1);
        EXPECT_EQ(log_.count(Event::external), 0U) << file;
        EXPECT_EQ(state("kcryptd"), State::set) << reason("kcryptd");
        EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "smt 1");
    }
}

TEST_F(EngineFaults, AnotherWriterOfTheDefaultMovesItsFollowersAndNotUs) {
    use(managed());
    ASSERT_EQ(default_scope(), "smt");
    tree_.write(test::kDefaultPath, "system\n");
    set_scope("kcryptd", "default (system)");
    set_scope("writeback", "default (system)");
    reconcile(2);
    EXPECT_EQ(default_scope(), "system");
    EXPECT_EQ(state("@default"), State::external);
    EXPECT_EQ(state("kcryptd"), State::set) << "which its rule still covers";
    parts_->engine.restore_all();
    EXPECT_EQ(default_scope(), "system");
}

// ---- what is held, and the effect on other targets

using EngineHeld = test::Rig;

TEST_F(EngineHeld, WhatIsOursBesideAForeignStrictnessStaysUntilNothingMayBeWritten) {
    parts_->engine.set_policy(test::rule_for_all(test::planned(), true));
    parts_->engine.reconcile();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    parts_->engine.reconcile();
    ASSERT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd"), "smt");
    parts_->targets.observe("/etc/wq-tuned/disabled exists");
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "default (cache) 0");
    files_->asked.clear();
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U);
    EXPECT_EQ(state("kcryptd"), State::external);
}
TEST_F(EngineHeld, OurStrictnessBesideAForeignScopeGoesBackAtOnce) {
    parts_->engine.set_policy(test::rule_for_all(test::planned(), true));
    parts_->engine.reconcile();
    ASSERT_EQ(strict("kcryptd"), "1");
    tree_.write(test::wq_path("kcryptd", "affinity_scope"), "cache\n");
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "cache 0");
    files_->asked.clear();
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 0U) << name_of(state("kcryptd"));
}
TEST_F(EngineHeld, FollowersOfARefusedDefaultArePlannedForThemselves) {
    files_->on_write = [](const auto& name, const auto&) { return name == kDefaultTarget ? EPERM : 0; };
    use(managed());
    parts_->engine.reconcile();
    EXPECT_EQ(state("@default"), State::quarantined);
    EXPECT_EQ(scope("kcryptd"), "smt") << name_of(state("kcryptd")) << " " << reason("kcryptd");
}

}  // namespace
}  // namespace wq
