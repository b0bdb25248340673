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

}  // namespace
}  // namespace wq
