// SPDX-License-Identifier: LGPL-2.1-or-later
// pin, unpin and revert: their effects, and why they are refused.
#include <gmock/gmock.h>

#include <cerrno>

#include "fake_rig.h"

namespace wq {
namespace {

using test::rule_for_all;
using testing::IsEmpty;

class Orders : public test::Rig {
  protected:
    Orders() { use(rule_for_all({})); }
    void apply_the_plan() { use(rule_for_all()); }
    static void expect_refused(const Status& done, const std::string& why, int code) {
        ASSERT_FALSE(done);
        EXPECT_THAT(done.error().text, testing::HasSubstr(why));
        EXPECT_EQ(done.error().code, code);
    }
};

TEST_F(Orders, PinEndsWhereTheDaemonStopsAndSettingsAreKept) {
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "cpu"));
    ASSERT_TRUE(parts_->orders.revert("writeback"));
    parts_->engine.keep_all();
    EXPECT_THAT(on_disk(), testing::ElementsAre(testing::Key("kcryptd"))) << "which holds something of ours";
    EXPECT_EQ(scope("kcryptd"), "cpu");
    restart();
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(Orders, PinIsBackAfterAForeignWriteThatIsTakenBack) {
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "cpu"));
    set_scope("kcryptd", "numa");
    parts_->engine.reconcile();
    ASSERT_EQ(state("kcryptd"), State::external);
    restart();
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::external);
    apply_the_plan();
    EXPECT_EQ(state("kcryptd"), State::external) << "it is still there";
    set_scope("kcryptd", "default (cache)");
    apply_the_plan();
    EXPECT_EQ(state("kcryptd"), State::pinned);
    EXPECT_EQ(scope("kcryptd"), "cpu");
}

TEST_F(Orders, RevertHoldsTheBaselineUntilAReload) {
    apply_the_plan();
    ASSERT_TRUE(parts_->orders.revert("kcryptd"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("writeback"), "smt");
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::reverted);
    restart();
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::reverted) << "a restart is no reload";
    ASSERT_TRUE(parts_->orders.unpin("kcryptd"));
    EXPECT_EQ(scope("kcryptd"), "smt");
    ASSERT_TRUE(parts_->orders.revert("kcryptd"));
    apply_the_plan();
    EXPECT_EQ(scope("kcryptd"), "smt");
}

// A workqueue without a setting of ours is held too: it follows @default, and while @default is held it would
// otherwise get a plan of its own.
TEST_F(Orders, RevertOfEverythingHoldsWhatNeedsNoSettingToo) {
    use(managed());
    ASSERT_EQ(state("kcryptd"), State::as_planned);
    ASSERT_TRUE(parts_->orders.revert(std::nullopt));
    parts_->engine.reconcile();
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(files_->asked, testing::ElementsAre("@default=smt", "@default=cache"));
}

TEST_F(Orders, RevertSaysWhereItFailsAndTriesAgain) {
    apply_the_plan();
    files_->on_write = [](const auto&, const auto& word) { return word == "default" ? EBUSY : 0; };
    for (int i = 0; i < 5; i++)
        EXPECT_FALSE(parts_->orders.revert("kcryptd")) << "for the " << i << "th time";
    EXPECT_FALSE(parts_->orders.revert(std::nullopt)) << "of all";
    files_->on_write = {};
    EXPECT_TRUE(parts_->orders.revert("kcryptd"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(Orders, APinThatFailsLeavesTheOrderBeforeIt) {
    apply_the_plan();
    ASSERT_TRUE(parts_->orders.revert("kcryptd"));
    files_->on_write = [](const auto&, const auto& word) { return word == "numa" ? EINVAL : 0; };
    EXPECT_FALSE(parts_->orders.pin("kcryptd", "numa"));
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "cpu"));
    EXPECT_FALSE(parts_->orders.pin("kcryptd", "numa"));
    parts_->engine.reconcile();
    EXPECT_EQ(state("kcryptd"), State::pinned);
    EXPECT_EQ(scope("kcryptd"), "cpu");
}

// ---- refusals

TEST_F(Orders, AreRefusedForWhatIsNoTargetOrCannotBeTouched) {
    expect_refused(parts_->orders.pin("nobody", "smt"), "no such target", ENOENT);
    expect_refused(parts_->orders.revert("nobody"), "no such target", ENOENT);
    expect_refused(parts_->orders.unpin("nobody"), "neither pinned nor reverted", ENOENT);
    expect_refused(parts_->orders.unpin("kcryptd"), "neither pinned nor reverted", ENOENT);
    expect_refused(parts_->orders.pin("../../../../etc", "smt"), "no such target", ENOENT);
    tree_.write(test::wq_path("kcryptd", "max_active"), "1\n");
    expect_refused(parts_->orders.pin("kcryptd", "smt"), "max_active is 1", EPERM);
    expect_refused(parts_->orders.revert("kcryptd"), "max_active is 1", EPERM);
}

TEST_F(Orders, AreRefusedForWordsThatAreNoScopeOfThisKernel) {
    expect_refused(parts_->orders.pin("kcryptd", "pony"), "'pony' is not a scope", EINVAL);
    expect_refused(parts_->orders.pin("kcryptd", "default"), "'default' is not a scope", EINVAL);
    expect_refused(parts_->orders.pin("kcryptd", "cache_shard"), "no cache_shard", EOPNOTSUPP);
}

TEST_F(Orders, AreRefusedWhileObservingOrExternalOrPodsAreUnknown) {
    parts_->targets.observe("switched off");
    expect_refused(parts_->orders.pin("kcryptd", "smt"), "switched off", EPERM);
    expect_refused(parts_->orders.revert("kcryptd"), "switched off", EPERM);
    expect_refused(parts_->orders.revert(std::nullopt), "switched off", EPERM);
    parts_->targets.observe("");
    see(test::without(topology_, "3"));
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "smt")) << "CPU 3 was seen";
    set_scope("kcryptd", "numa");
    expect_refused(parts_->orders.pin("kcryptd", "cpu"), "wrote 'numa'", EPERM);
    expect_refused(parts_->orders.revert("kcryptd"), "wrote 'numa'", EPERM);
    Topology plugged = topology_;
    plugged.warnings = {"CPU 30 is odd"};
    see(plugged);
    expect_refused(parts_->orders.pin("writeback", "cpu"), "pods unknown", EPERM);
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(asked(), 1U);
}

TEST_F(Orders, AreRefusedWhereTheKernelRefuses) {
    files_->on_write = [](const auto&, const auto&) { return EINVAL; };
    expect_refused(parts_->orders.pin("kcryptd", "cpu"), "Invalid argument", EIO);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty()) << "no order is left to be tried later";
    parts_->engine.reconcile();
    EXPECT_EQ(asked(), 1U);
    files_->on_write = nullptr;
    EXPECT_TRUE(parts_->orders.pin("kcryptd", "cpu")) << "an operator may try again";
}

TEST_F(Orders, AnUnpinThatCannotPutBackSaysSoAndIsTriedAgain) {
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "cpu"));
    files_->on_write = [](const auto&, const auto&) { return EPERM; };
    expect_refused(parts_->orders.unpin("kcryptd"), "kcryptd: not put back to 'default'", EIO);
    EXPECT_EQ(scope("kcryptd"), "cpu");
    files_->on_write = nullptr;
    parts_->engine.reconcile();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(Orders, AreRefusedWhereTheTargetVanishes) {
    files_->on_write = [&](const auto&, const auto&) {
        tree_.remove("sys/devices/virtual/workqueue/kcryptd");
        return 0;
    };
    expect_refused(parts_->orders.pin("kcryptd", "cpu"), "vanished", ENOENT);
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(Orders, ThatFailLeaveThePlanInForce) {
    kernel_ = test::kernel_72();
    restart();
    files_->prefixes = true;  // claims to have cache_shard, but does not
    use(rule_for_all(test::fixed(Scope::smt)));
    ASSERT_EQ(scope("kcryptd"), "smt");
    EXPECT_FALSE(parts_->orders.pin("kcryptd", "cache_shard"));
    parts_->engine.reconcile();
    EXPECT_EQ(log_.count(Event::external), 0U) << reason("kcryptd");
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").main.baseline, "default");
}

}  // namespace
}  // namespace wq
