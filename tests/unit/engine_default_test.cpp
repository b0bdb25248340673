// SPDX-License-Identifier: LGPL-2.1-or-later
// How the engine handles @default, its followers, and strictness.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fake_rig.h"
#include "service/status.h"
#include "targets/engine.h"

namespace wq {
namespace {

using test::fixed;
using test::leave;
using test::rule_for_all;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

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
        for (const auto& refused : {engine_->pin("@default", "smt"), engine_->may_try("@default")}) {
            ASSERT_FALSE(refused);
            EXPECT_THAT(refused.error().text, HasSubstr("left-1"));
        }
        tree_.remove("sys/devices/virtual/workqueue/left-1");
        restart();
        engine_->reconcile();
        EXPECT_EQ(state("@default"), State::reverted) << "mounts must not make it flap";
        use(policy);
        EXPECT_EQ(state("@default"), State::waiting);
    }
}

TEST_F(EngineDefault, StaysWhileAFollowerIsReverted) {
    Policy policy = rule_for_all({});
    policy.default_scope.manage = true;
    use(policy);
    ASSERT_TRUE(engine_->revert("kcryptd"));
    EXPECT_THAT(engine_->note(), HasSubstr("`kcryptd` (reverted by an operator's order)"));
    EXPECT_EQ(state("@default"), State::leave);
    ASSERT_TRUE(engine_->unpin("kcryptd"));
    EXPECT_EQ(engine_->note(), "");
    EXPECT_EQ(state("@default"), State::waiting);
}

// ---- @default

TEST_F(EngineDefault, WritesTheManagedDefaultAloneForItsFollowers) {
    use(managed());
    EXPECT_THAT(files_->asked, ElementsAre("@default=smt"));
    EXPECT_EQ(scope("kcryptd"), "default (smt)");
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    EXPECT_EQ(state("@default"), State::set);
    EXPECT_THAT(on_disk(), ElementsAre(Key("@default")));
    engine_->reconcile();
    EXPECT_EQ(asked(), 1U);
    EXPECT_EQ(log_.count(Event::external), 0U) << "our doing, not a foreign write";
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

TEST_F(EngineDefault, HandsAFollowerOverToTheDefault) {
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
    use(managed());
    EXPECT_EQ(scope("kcryptd"), "default (smt)");
    EXPECT_THAT(on_disk(), ElementsAre(Key("@default")));
}

// ---- strictness

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

TEST_F(EngineDefault, ACpuThatIsBackBeforeAnyLookMayHaveLiftedStrictness) {
    use(rule_for_all(test::planned(), true));
    engine_->changed(Udev::Change::cpu_online);
    see(topology_);
    EXPECT_THAT(reason_told(), HasSubstr("strict, but"));
}

TEST_F(EngineDefault, LeavesTheWordWhereOnlyStrictnessIsWanted) {
    use(rule_for_all(fixed(Scope::cache), true));
    EXPECT_THAT(files_->asked, ElementsAre("kcryptd strict=1", "writeback strict=1"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    use(rule_for_all(leave()));
    EXPECT_EQ(strict("kcryptd"), "0");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(EngineDefault, TakesStrictnessBackWhereTheRuleNoLongerNamesIt) {
    use(rule_for_all(test::planned(), true));
    use(rule_for_all());
    EXPECT_EQ(strict("kcryptd"), "0") << "what we set, nobody asks for any more";
    EXPECT_EQ(scope("kcryptd"), "smt");
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "1\n");  // by an external writer
    engine_->reconcile();
    EXPECT_EQ(strict("kcryptd"), "1") << "it is ours no more";
}

}  // namespace
}  // namespace wq
