// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels that refuse a write, or store a different word than was written; other writers; what is held.
#include <gmock/gmock.h>
#include <syslog.h>

#include <cerrno>

#include "fake_rig.h"
#include "targets/engine.h"

namespace wq {
namespace {

using test::rule_for_all;
using test::wq_path;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

class EngineFaults : public test::Rig {
  protected:
    EngineFaults() { engine_->set_policy(kcryptd_only()); }
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
    void revert_all_of_an_earlier_life() {
        reconcile(1);
        hide();
        restart();
        engine_->set_policy(kcryptd_only());
        reconcile(1);
        ASSERT_TRUE(engine_->revert(std::nullopt));
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
    engine_->set_policy(kcryptd_only());
    reconcile(2);
    EXPECT_THAT(on_disk(), testing::Contains(Key("kcryptd")));
    show();
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::set);
    EXPECT_THAT(files_->asked, IsEmpty());
}

TEST_P(EngineUnread, OfAnEarlierLifeHearsTheOrderToRevertAll) {
    revert_all_of_an_earlier_life();
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
    EXPECT_FALSE(engine_->wants_retry());
    EXPECT_THAT(on_disk(), IsEmpty()) << "nothing of ours is there";
    fail_writes({EBUSY, EBUSY});
    engine_->set_policy(kcryptd_only());
    reconcile(3);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_FALSE(engine_->wants_retry());
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
}

TEST_F(EngineFaults, TriesABusyKernelThreeTimesThenQuarantines) {
    fail_writes({EBUSY, ENOMEM, EAGAIN, EBUSY, EBUSY});
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("try 1 of 3"));
    engine_->look();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("about to be tried again"));
    EXPECT_TRUE(engine_->wants_retry());
    EXPECT_THAT(log_.lines, IsEmpty());
    reconcile(1);
    EXPECT_TRUE(engine_->wants_retry());
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_FALSE(engine_->wants_retry());
    reconcile(3);
    EXPECT_EQ(asked(), 3U);
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
}

TEST_F(EngineFaults, TriesABaselineThatCannotBePutBackThreeTimesAndAgainAtTheEnd) {
    reconcile(1);
    fail_writes({EPERM, EPERM, EPERM});
    engine_->observe("switched off");
    reconcile(6);
    EXPECT_EQ(asked(), 4U);
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("not put back to 'default'"));
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
    EXPECT_THAT(log_.lines.back().fields,
                ElementsAre(Pair("WQ_NAME", "kcryptd"), Pair("ERRNO", std::to_string(EPERM))));
    EXPECT_THAT(on_disk(), ElementsAre(Key("kcryptd")));
    engine_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(EngineFaults, WhatIsToStayAgainIsPutBackAtOnceTheNextTime) {
    reconcile(1);
    fail_writes({EPERM, EPERM, EPERM});
    engine_->observe("switched off");
    reconcile(3);
    ASSERT_EQ(state("kcryptd"), State::quarantined);
    engine_->observe("");
    reconcile(1);
    EXPECT_EQ(state("kcryptd"), State::set);
    engine_->look();
    EXPECT_EQ(state("kcryptd"), State::set) << reason("kcryptd");
    engine_->observe("switched off");
    reconcile(1);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(EngineFaults, OneNameThatJsonCannotHoldDoesNotStopTheOthers) {
    tree_.add(
        test::Dir("sys/devices/virtual/workqueue", {test::workqueue("caf\xe9", {.cpumask = "ffffff"})}));
    engine_->set_policy(rule_for_all());
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
    engine_->set_policy(policy);
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

// ---- what is held, and the effect on other targets

using EngineHeld = test::Rig;

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
}  // namespace
}  // namespace wq
