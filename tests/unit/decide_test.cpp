// SPDX-License-Identifier: LGPL-2.1-or-later
// decide() turns the facts about one target into its state, its reason and the word to write. Uses no files.
#include "targets/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/udev.h"

namespace wq {
namespace {

using testing::Optional;

const Arm kSmt = {Scope::smt, "smt", {}};
const Arm kNuma = {Scope::numa, "numa", {}};
const Arm kDefault = {Scope::cache, "default", {}};

class DecideTest : public testing::Test {
  protected:
    // The file holds `default (cache)`, and the plan is smt.
    DecideTest() {
        target_.store = &store_;
        target_.now.name = "kcryptd";
        target_.now.kind = Kind::unbound;
        target_.now.inode = 1;
        target_.now.scope = {"default", Scope::cache};
        target_.now.strict = false;
        target_.opted_out = false;
        target_.last.main = "default";
        target_.plan.now = Scope::cache;
        plan(Finding::change, "smt: one shard per core");
        target_.plan.planned = Scope::smt;
    }
    // A change is set first.
    void plan(Finding finding, const std::string& reason) {
        target_.plan.finding = finding;
        target_.plan.reason = reason;
        target_.step = {};
        if (finding == Finding::change) {
            target_.step.kind = Step::Kind::set;
            target_.step.hold = kSmt;
            target_.step.said = reason;
        }
    }
    // The file holds WORD, which we wrote, and the entry is settled.
    void hold(const std::string& word) {
        with_entry().announce({word, {}});
        with_entry().settle({word, target_.now.strict});
        target_.now.scope = {word, scope_named(word)};
        target_.last.main = word;
    }
    Owned& with_entry() { return target_.make_entry(); }
    void refuse(const std::string& word) {
        target_.refused = {{word, State::quarantined, "Operation not permitted"}};
    }
    [[nodiscard]] Wish wish() const { return decide(target_, all_); }
    [[nodiscard]] Shown found() const { return as_found(target_, wish(), unsaved_); }
    void expect(State state, const std::string& reason) const {
        EXPECT_EQ(name_of(wish().state), name_of(state));
        EXPECT_EQ(wish().reason, reason);
    }
    void expect_found(State state, const std::string& reason) const {
        EXPECT_EQ(name_of(found().state), name_of(state));
        EXPECT_EQ(found().reason, reason);
    }
    // The wish is to write WORD.
    void expect_word(const std::string& word) const {
        EXPECT_THAT(wish().word, Optional(word));
        EXPECT_TRUE(wish().wants());
    }
    void expect_baseline() const {
        EXPECT_EQ(wish().word, std::nullopt);
        EXPECT_FALSE(wish().hands_off);
    }

    OwnedStore store_{""};
    Target target_;
    std::string unsaved_;
    Circumstances all_{.waiting = {.why = "waiting: not busy"}};
};

TEST_F(DecideTest, ThePlanIsApplied) {
    expect(State::set, "smt: one shard per core");
    expect_word("smt");
    EXPECT_EQ(wish().strict, std::nullopt);
    EXPECT_TRUE(wish().sets(target_));
    expect_found(State::waiting, "about to be applied: smt: one shard per core");
    hold("smt");
    EXPECT_FALSE(wish().sets(target_));
    expect_found(State::set, "smt: one shard per core");
}

TEST_F(DecideTest, AStrictnessOfARuleIsSetAndGoesBackWithoutIt) {
    hold("smt");
    target_.plan.strict = target_.step.hold->strict = true;
    EXPECT_TRUE(wish().sets(target_));
    EXPECT_THAT(wish().strict, Optional(true));
    with_entry().announce({"smt", true});
    with_entry().settle({"smt", true});
    target_.now.strict = true;
    EXPECT_FALSE(wish().sets(target_));
    target_.plan.strict = target_.step.hold->strict = {};
    EXPECT_THAT(wish().strict, Optional(false)) << "as it was before us";
    EXPECT_TRUE(wish().sets(target_));
}

TEST_F(DecideTest, WhatThePlanLeavesIsAtItsBaseline) {
    const std::pair<Finding, State> cases[] = {{Finding::untouchable, State::unmanaged},
                                               {Finding::unmanaged, State::unmanaged},
                                               {Finding::leave, State::leave},
                                               {Finding::followers, State::leave},
                                               {Finding::unsupported, State::unsupported},
                                               {Finding::in_place, State::as_planned}};
    hold("smt");
    for (const auto& [finding, state] : cases) {
        plan(finding, "why");
        expect(state, "why");
        expect_baseline();
        EXPECT_EQ(wish().lacks_scope, finding == Finding::unsupported);
        expect_found(State::set, "left in force");
    }
}

TEST_F(DecideTest, AScopeThatTheKernelLacksIsNoNewsWhereAnOrderDecides) {
    plan(Finding::unsupported, "this kernel has no cache_shard");
    EXPECT_TRUE(wish().lacks_scope);
    with_entry().hold(Holder::revert);
    EXPECT_FALSE(wish().lacks_scope);
    with_entry().hold(Holder::policy);
    EXPECT_TRUE(wish().lacks_scope);
    all_.observing = "mode is observe";
    EXPECT_FALSE(wish().lacks_scope);
}

TEST_F(DecideTest, WhileObservingOnlyBaselinesAreWritten) {
    all_.observing = "switched off";
    expect(State::waiting, "observing: switched off; plan: smt: one shard per core");
    expect_baseline();
    for (const Holder holder : {Holder::pin, Holder::revert, Holder::slot}) {
        with_entry().hold(holder, "cpu");
        expect_baseline();
    }
    target_.in_slot = true;
    expect_baseline();
    plan(Finding::leave, "a rule says so");
    expect(State::leave, "a rule says so");
}

TEST_F(DecideTest, WhatAnExternalWriterHoldsIsLeftWhateverElseIsSo) {
    target_.external = "numa";
    for (const bool observing : {false, true}) {
        all_.observing = observing ? "switched off" : "";
        for (const Holder holder : {Holder::policy, Holder::pin, Holder::revert, Holder::slot}) {
            with_entry().hold(holder, "cpu");
            EXPECT_EQ(target_.holder(), Holder::external);
            expect(State::external, "an external writer wrote 'numa'");
            EXPECT_TRUE(wish().hands_off);
            expect_found(State::external, "an external writer wrote 'numa'");
        }
    }
}

TEST_F(DecideTest, WhatUdevMaySetAsideIsLeftUntilThatIsKnown) {
    target_.opted_out.reset();
    target_.now.untouchable = kNotProcessedByUdev;
    hold("smt");
    with_entry().hold(Holder::pin, "smt");
    EXPECT_EQ(target_.holder(), Holder::udev);
    expect(State::waiting, kNotProcessedByUdev);
    EXPECT_TRUE(wish().hands_off);
    all_.observing = "switched off";
    expect_baseline();
}

TEST_F(DecideTest, WhatIsInASlotIsLeftToIt) {
    with_entry().hold(Holder::slot);
    EXPECT_EQ(target_.holder(), Holder::policy) << "of an earlier daemon";
    target_.in_slot = true;
    EXPECT_EQ(target_.holder(), Holder::slot);
    expect(State::comparing, "smt: one shard per core");
    EXPECT_TRUE(wish().hands_off);
}

TEST_F(DecideTest, APinHoldsAScopeAndNoStrictness) {
    with_entry().hold(Holder::pin, "cpu");
    expect(State::pinned, "by an operator's order");
    expect_word("cpu");
    EXPECT_EQ(wish().strict, std::nullopt);
    with_entry().strict = Attribute{Knob::strict, "0", {"1"}};
    EXPECT_THAT(wish().strict, Optional(false));
}

TEST_F(DecideTest, APinThatTheKernelRefusedIsAtItsBaseline) {
    with_entry().hold(Holder::pin, "cpu");
    refuse("cpu");
    expect(State::quarantined, "Operation not permitted");
    expect_baseline();
}

TEST_F(DecideTest, APinIsNotWrittenAnewWhilePodsAreUnknown) {
    with_entry().hold(Holder::pin, "cpu");
    all_.pods_unknown = "CPU 3 was offline at boot";
    expect(State::pinned, "by an operator's order");
    EXPECT_FALSE(wish().sets(target_));
    EXPECT_TRUE(wish().hands_off) << "nor put back";
}

TEST_F(DecideTest, WhatIsRevertedIsAtItsBaseline) {
    hold("smt");
    with_entry().hold(Holder::revert);
    expect(State::reverted, "by an operator's order");
    expect_baseline();
    with_entry().note = "`writeback` must stay";
    expect(State::reverted, "`writeback` must stay");
}

TEST_F(DecideTest, WhatIsSetFirstIsComparedAfterwards) {
    target_.step.next = Arms{kDefault, kSmt};
    target_.step.course = Course::dense;
    expect(State::set, "smt: one shard per core; waiting: not busy");
    all_.waiting.unjudged = "no BPF";
    expect(State::set, "smt: one shard per core; not watched: no BPF");
    all_.waiting.unjudged.clear();
    all_.waiting.compared = {"kcryptd"};
    expect(State::comparing, "smt: one shard per core; waiting: not busy");
    expect_word("smt");
}

TEST_F(DecideTest, WhilePodsAreUnknownNothingIsWrittenAndNothingTakenBack) {
    plan(Finding::pods_unknown, "pods unknown");
    expect(State::leave, "pods unknown");
    EXPECT_TRUE(wish().hands_off);
    hold("smt");
    expect(State::set, "pods unknown");
    EXPECT_TRUE(wish().hands_off);
    with_entry().hold(Holder::slot);
    expect(State::leave, "pods unknown");
    expect_baseline();
    target_.held = "smt";
    expect(State::set, "pods unknown");
    EXPECT_EQ(wish().word, "smt") << "it was kept before the slot";
}

TEST_F(DecideTest, UnjudgedItWaitsForAComparison) {
    target_.step = {};
    expect(State::waiting, "waiting: not busy; plan: smt: one shard per core");
    expect_baseline();
    target_.step.next = Arms{kDefault, kSmt};
    target_.step.course = Course::dense;
    expect(State::waiting, "waiting: not busy; plan: smt: one shard per core");
    all_.waiting.compared = {"writeback"};
    expect(State::waiting, "waiting: not busy; plan: smt: one shard per core");
    all_.waiting.compared = {"kcryptd"};
    expect(State::comparing, "waiting: not busy; plan: smt: one shard per core");
    target_.step.course = Course::sparse;
    expect(State::waiting, "waiting: not busy; plan: smt: one shard per core");
}

TEST_F(DecideTest, AScopeThatOnlyTheSearchNamesWaitsToo) {
    plan(Finding::in_place, "in place");
    target_.step.next = Arms{kDefault, kNuma};
    target_.step.course = Course::dense;
    expect(State::waiting, "waiting: not busy; plan: in place");
    refuse("numa");
    expect(State::quarantined, "Operation not permitted");
    expect_baseline();
}

TEST_F(DecideTest, WhereThePlanIsRefusedTheSearchGoesOn) {
    refuse("smt");
    target_.step = {};
    expect(State::quarantined, "Operation not permitted");
    target_.step.next = Arms{kDefault, kNuma};
    target_.step.course = Course::dense;
    expect(State::waiting,
           "waiting: not busy; plan: smt: one shard per core; 'smt' was refused: Operation not permitted");
    expect_baseline();
}

TEST_F(DecideTest, WhatTheLedgerKeptIsHeld) {
    target_.step.kind = Step::Kind::kept;
    target_.step.hold = kNuma;
    target_.step.said = "numa against cache: improved";
    expect(State::kept, "numa against cache: improved");
    expect_word("numa");
    target_.step.next = Arms{kNuma, kSmt};
    target_.step.course = Course::dense;
    expect(State::kept, "numa against cache: improved; waiting: not busy");
    all_.waiting.compared = {"kcryptd"};
    expect(State::comparing, "numa against cache: improved; waiting: not busy");
    expect_word("numa");
    refuse("numa");
    expect(State::quarantined, "Operation not permitted");
    expect_baseline();
}

TEST_F(DecideTest, WhatRegressedIsAtItsBaseline) {
    target_.step = {};
    target_.step.kind = Step::Kind::reverted;
    target_.step.said = "smt against cache: regressed";
    target_.step.course = Course::resting;
    expect(State::reverted, "smt against cache: regressed");
    expect_baseline();
    target_.step.course = Course::sparse;
    expect(State::waiting, "smt against cache: regressed; waiting: not busy");
    target_.step.course = Course::dense;
    all_.waiting.compared = {"kcryptd"};
    expect(State::comparing, "smt against cache: regressed; waiting: not busy");
    target_.step.hold = kNuma;
    expect_word("numa");
}

TEST_F(DecideTest, WhatWasRefusedIsNotTriedAgain) {
    refuse("smt");
    expect(State::quarantined, "Operation not permitted");
    expect_baseline();
    refuse("cpu");
    expect_word("smt");
}

TEST_F(DecideTest, WhatIsShownSaysWhatComesNext) {
    target_.failures = 1;
    expect_found(State::waiting, "about to be tried again: smt: one shard per core");
    unsaved_ = "its baseline cannot be saved: No space left on device";
    expect_found(State::waiting, "its baseline cannot be saved: No space left on device");
    target_.stuck = Target::kTries - 1;
    expect_found(State::waiting, "its baseline cannot be saved: No space left on device");
    target_.stuck = Target::kTries;
    target_.stuck_why = "not put back to 'default': Invalid argument";
    expect_found(State::quarantined, "not put back to 'default': Invalid argument");
}

}  // namespace
}  // namespace wq
