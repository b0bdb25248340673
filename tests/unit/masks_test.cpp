// SPDX-License-Identifier: LGPL-2.1-or-later
// How the daemon applies the masks of the policy, and who wrote a mask.
#include <gmock/gmock.h>

#include <memory>

#include "fake_log.h"
#include "fake_workqueue_files.h"
#include "targets/mask_keeper.h"
#include "temp_tree.h"

namespace wq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const MaskWish kHousekeeping{MaskWish::Kind::housekeeping, {}};

MaskWish fixed(const CpuSet& cpus) {
    return {MaskWish::Kind::fixed, cpus};
}

class MasksTest : public testing::Test {
  protected:
    void SetUp() override {
        files_.masks = {{"a", {7, "ff"}}, {"b", {8, "ff"}}, {kDefaultMask, {9, "ff"}}};
        start();
    }
    // Starts a daemon with the record that the previous one left on disk.
    void start() {
        store_ = std::make_unique<OwnedStore>(tree_.path("owned.json"));
        ASSERT_TRUE(store_->load());
        reconciler_ = std::make_unique<Reconciler>(files_, *store_, targets_log_);
        keeper_ = std::make_unique<MaskKeeper>(files_, *store_, targets_log_, *reconciler_);
    }
    void rule(const std::string& match, const MaskWish& wish) {
        policy_.rules.push_back({{match}, {}, std::nullopt, {}, "", "", false, wish});
    }
    void reconcile() {
        keeper_->look(
            policy_, "", [&] { return cpus_; }, [&](const auto&) { return opted_out_; });
        keeper_->reconcile();
    }
    void reload() {
        targets_log_.start_over();
        keeper_->start_over();
    }
    [[nodiscard]] bool wants_retry() const { return keeper_->masks().at("a").wants_retry(); }
    [[nodiscard]] const Mask& mask(const std::string& name) { return keeper_->masks().at(name); }
    [[nodiscard]] std::string& text(const std::string& name) { return files_.masks.at(name).text; }

    test::TempTree tree_;
    test::FakeWorkqueueFiles files_;
    test::FakeLog log_;
    Policy policy_;
    HostCpus cpus_{CpuSet::range(0, 7), {}};
    std::optional<bool> opted_out_ = false;
    std::unique_ptr<OwnedStore> store_;
    TargetLog targets_log_{log_};
    std::unique_ptr<Reconciler> reconciler_;
    std::unique_ptr<MaskKeeper> keeper_;
};

TEST_F(MasksTest, ARefusedMaskIsNotTriedAgainBeforeAReload) {
    rule("a", fixed({2}));
    files_.write_errors = {EINVAL};
    reconcile();
    EXPECT_EQ(mask("a").state, State::quarantined);
    reconcile();
    EXPECT_EQ(files_.writes().size(), 1U);
    EXPECT_EQ(log_.count(Event::quarantined), 1U);
    reload();
    files_.write_errors = {EBUSY};
    reconcile();
    EXPECT_TRUE(wants_retry());
    reconcile();
    EXPECT_EQ(text("a"), "4");
    EXPECT_FALSE(wants_retry());
}

TEST_F(MasksTest, WhatTheKernelLeavesOutItselfIsNotWritten) {
    policy_.default_mask = kHousekeeping;
    files_.masks[kDefaultMask].excluded = cpus_.isolated = {2, 3};
    reconcile();
    EXPECT_EQ(mask(kDefaultMask).state, State::as_planned);
    EXPECT_THAT(files_.writes(), IsEmpty());
    policy_.default_mask = fixed(CpuSet::range(0, 5));
    files_.masks[kDefaultMask].excluded = cpus_.isolated = {};
    reconcile();
    files_.masks[kDefaultMask].excluded = cpus_.isolated = {2, 3};
    reconcile();
    EXPECT_THAT(files_.writes(), ElementsAre("@default_mask 3f")) << "nor is it an external writer's";
    EXPECT_EQ(mask(kDefaultMask).state, State::set);
}

TEST_F(MasksTest, IsAppliedAndPutBackBitForBit) {
    text("a") = "00,000000ff";
    rule("a", fixed({2, 3}));
    reconcile();
    EXPECT_EQ(text("a"), "c");
    EXPECT_EQ(log_.lines.back().text, "a: cpumask CPUs 0-7 -> CPUs 2-3: cpumask = \"2-3\"");
    EXPECT_EQ(mask("a").state, State::set);
    EXPECT_EQ(keeper_->masks().count("b"), 0U);
    reconcile();
    EXPECT_THAT(files_.writes(), ElementsAre("a c")) << "once";
    (void)restore_all(files_, *store_, log_);
    EXPECT_THAT(files_.writes(), ElementsAre("a c", "a 00,000000ff"));
    EXPECT_EQ(log_.lines.back().text, "a: cpumask restored to CPUs 0-7");
    EXPECT_THAT(store_->all(), IsEmpty());
}

TEST_F(MasksTest, HousekeepingFollowsIsolation) {
    rule("a", kHousekeeping);
    reconcile();
    EXPECT_EQ(mask("a").state, State::as_planned);
    cpus_.isolated = {2, 3};
    reconcile();
    EXPECT_EQ(text("a"), "f3");
    EXPECT_EQ(mask("a").state, State::set);
    cpus_.isolated = {};
    reconcile();
    EXPECT_EQ(text("a"), "ff");
    EXPECT_THAT(store_->all(), IsEmpty()) << "the baseline is in place";
    cpus_.isolated = CpuSet::range(0, 7);
    reconcile();
    EXPECT_EQ(text("a"), "ff");
    EXPECT_THAT(mask("a").reason,
                testing::HasSubstr(
                    "no CPU is left: all CPUs of the mask are isolated or not possible (isolated: 0-7)"));
    cpus_.isolated = {};
    policy_.rules.back().mask = fixed({64});
    reconcile();
    EXPECT_THAT(mask("a").reason, testing::HasSubstr("no CPU of the mask is possible"));
}

TEST_F(MasksTest, TheMaskOfAllIsWrittenWithoutIsolatedCpus) {
    policy_.default_mask = fixed(CpuSet::range(0, 5));
    cpus_.isolated = {2, 3};
    reconcile();
    EXPECT_EQ(text(kDefaultMask), "33");
    cpus_.isolated = {};
    reconcile();
    EXPECT_EQ(text(kDefaultMask), "3f");
    (void)restore_all(files_, *store_, log_);
    EXPECT_EQ(text(kDefaultMask), "ff");
}

// The walk of ownership_property_test.cpp has the rest.
TEST_F(MasksTest, AnExternalWritersMaskIsSaidOnce) {
    rule("a", fixed({2}));
    reconcile();
    text("a") = "3";
    reconcile();
    reconcile();
    EXPECT_EQ(mask("a").reason, "an external writer wrote CPUs 0-1");
    ASSERT_EQ(log_.count(Event::mask_external), 1U);
    EXPECT_EQ(log_.lines.back().text,
              "a: cpumask holds CPUs 0-1, which an external writer wrote; it is left alone until the "
              "baseline is back and the policy is reloaded");
    EXPECT_THAT(log_.lines.back().fields, testing::Contains(testing::Pair("WQ_NAME", "a")));
}

TEST_F(MasksTest, AListThatCannotBeReadTakesNothingBack) {
    rule("*", fixed({2}));
    reconcile();
    files_.names_error = EMFILE;
    reconcile();
    EXPECT_EQ(text("a"), "4");
    EXPECT_EQ(mask("a").state, State::set);
    files_.names_error = 0;
    files_.masks.erase("a");
    reconcile();
    EXPECT_FALSE(keeper_->masks().contains("a"));
}

TEST_F(MasksTest, WhatHasNoMaskIsNamedOnlyWhereARuleNamesIt) {
    files_.masks["a"].untouchable = "ordered";
    rule("a", fixed({2}));
    rule("*", fixed({3}));
    files_.masks["c"] = {18, "ff", "ordered"};
    reconcile();
    EXPECT_EQ(mask("a").state, State::leave);
    EXPECT_EQ(mask("a").reason, "ordered");
    EXPECT_EQ(keeper_->masks().count("c"), 0U);
    EXPECT_THAT(files_.writes(), ElementsAre("b 8"));
}

TEST_F(MasksTest, UdevSetsAWorkqueueAside) {
    rule("a", fixed({2}));
    opted_out_.reset();
    reconcile();
    EXPECT_EQ(mask("a").state, State::waiting);
    opted_out_ = true;
    reconcile();
    EXPECT_EQ(mask("a").state, State::leave);
    EXPECT_THAT(files_.writes(), IsEmpty());
}

TEST_F(MasksTest, NothingIsWrittenWhereTheCpusAreNotKnown) {
    rule("a", fixed({2}));
    policy_.default_mask = fixed({0, 1, 2});
    cpus_ = {};
    reconcile();
    EXPECT_THAT(files_.writes(), IsEmpty());
    EXPECT_EQ(mask(kDefaultMask).state, State::waiting);
}

TEST_F(MasksTest, ARefusedMaskTakesBackTheOneBefore) {
    rule("a", kHousekeeping);
    cpus_.isolated = {1};
    files_.write_errors = {EINVAL};
    reconcile();
    ASSERT_EQ(mask("a").state, State::quarantined);
    cpus_.isolated = {2};
    reconcile();
    ASSERT_EQ(text("a"), "fb");
    cpus_.isolated = {1};
    reconcile();
    EXPECT_EQ(text("a"), "ff");
    EXPECT_EQ(mask("a").state, State::quarantined);
}

}  // namespace
}  // namespace wq
