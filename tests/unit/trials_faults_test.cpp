// SPDX-License-Identifier: LGPL-2.1-or-later
// What fails around a trial, and what is left then.
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>

#include "fake_trials.h"
#include "tuner/restore.h"
#include "tuner/trials.h"

namespace wq {
namespace {

using test::rule_for_all;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TrialsFaults : public test::TrialRig {
  protected:
    TrialsFaults() { counters_.more = {{"kcryptd", 100'000}}; }  // the other one has no turn
    [[nodiscard]] std::ptrdiff_t times_said(const std::string& text) const {
        return std::ranges::count_if(
            log_.lines, [&](const LogLine& line) { return line.text.find(text) != std::string::npos; });
    }
    [[nodiscard]] bool said(const std::string& text) const { return times_said(text) > 0; }
    // Five pairs are judged, then there is too little load.
    void park() {
        wait_for_traffic();
        for (int i = 0; i < 5 * 5; i++) step();
        counters_.count = [](unsigned) { return WorkCount{.items = 10, .latency = 99}; };
        for (int i = 0; i < 5; i++) step();
        ASSERT_EQ(progress("kcryptd")->phase, "waiting");
        candidate_costs(1);
    }
    void candidate_in_place() {
        wait_for_traffic();
        while (scope("kcryptd") != "smt" && step()) {
        }
        ASSERT_EQ(scope("kcryptd"), "smt");
    }
    void fail_next_writes(int count) {
        files_->on_write = [count](const auto&, const auto&) mutable { return count-- > 0 ? EBUSY : 0; };
    }
    // on_exit = "keep".
    void stop() {
        trials_->cancel_all("wq-tuned stopped");
        tuner_->keep_all();
    }
    void restorer() {
        BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
        ASSERT_TRUE(store.load());
        EXPECT_EQ(restore_entries(*files_, store, log_, true), 0U);
    }
};

// A kernel that is busy just then.
TEST_F(TrialsFaults, ACandidateThatCannotBeTakenBackAtTheEndIsNotKept) {
    candidate_in_place();
    fail_next_writes(1);
    stop();
    ASSERT_EQ(scope("kcryptd"), "smt");
    restorer();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(TrialsFaults, NorWhereItsTrialWasReverted) {
    candidate_in_place();
    fail_next_writes(2);
    ASSERT_FALSE(tuner_->revert("kcryptd"));
    stop();
    ASSERT_EQ(scope("kcryptd"), "smt");
    restorer();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsFaults, NorWhereAPinOfItFailed) {
    candidate_in_place();
    fail_next_writes(2);
    ASSERT_FALSE(tuner_->pin("kcryptd", "numa"));
    EXPECT_EQ(on_disk().at("kcryptd").order, kTrial);
    ASSERT_EQ(scope("kcryptd"), "smt");
    stop();
    restorer();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsFaults, NothingBeginsWhereTheBaselineCannotBeSaved) {
    tree_.remove("run/wq-tuned");
    const auto before = asked();
    wait_for_traffic();
    reconcile();
    EXPECT_FALSE(trials_->due());
    EXPECT_FALSE(counters_.attached);
    EXPECT_EQ(asked(), before) << "nothing is written";
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("waiting: its baseline cannot be saved"));
    EXPECT_THAT(verdicts_->records(), IsEmpty());
    tree_.add(test::Dir("run/wq-tuned"));
    for (int i = 0; i < 4; i++) tick();
    EXPECT_EQ(state("kcryptd"), State::trial);
}

// What can count the traffic may still not be let to attach.
TEST_F(TrialsFaults, WhatCannotBeginForGoodIsSaidOnce) {
    counters_.attach_error = Error{EPERM, "raw tracepoints are locked down"};
    wait_for_traffic();
    for (int i = 0; i < 40; i++) tick();
    EXPECT_LE(std::ranges::count(counters_.asked, "attach kcryptd"), 6) << "of 41 ticks: less and less often";
    EXPECT_EQ(times_said("no trial could begin: raw tracepoints are locked down"), 1);
    counters_.attach_error = Error{EAGAIN, "BPF is busy"};
    for (int i = 0; i < 40; i++) tick();
    EXPECT_FALSE(said("BPF is busy")) << "it passes";
}

TEST_F(TrialsFaults, AWaitingTrialThatCannotGoOnStaysAsItIs) {
    park();
    counters_.attach_error = Error{EAGAIN, "BPF is busy"};
    wait_for_traffic();
    reconcile();
    EXPECT_FALSE(trials_->due());
    EXPECT_FALSE(counters_.attached);
    EXPECT_EQ(progress("kcryptd")->phase, "waiting");
    EXPECT_THAT(reason("kcryptd"), HasSubstr("BPF is busy"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    counters_.attach_error.reset();
    for (int i = 0; i < 4; i++) tick();
    EXPECT_EQ(progress("kcryptd")->pair, 6U) << "with the pairs that it had";
}

TEST_F(TrialsFaults, AWaitingTrialThatWouldBeCountedOtherwiseEnds) {
    park();
    counters_.lacks = "this kernel refuses fentry";
    for (int i = 0; i < 4 && verdicts_->records().empty(); i++) tick();
    ASSERT_THAT(verdicts_->records(), SizeIs(1));
    EXPECT_FALSE(last().judged);
    EXPECT_THAT(last().reason, HasSubstr("not counted as before"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

// Nothing is planned there, so that nobody watches the file meanwhile.
TEST_F(TrialsFaults, AWaitingTrialByHandEndsWhereSomebodyElseWrites) {
    begin(rule_for_all(test::leave()));
    counters_.more = {{"kcryptd", 100'000}};
    ASSERT_TRUE(trials_->order("kcryptd", "smt"));
    for (int i = 0; i < 5 * 5; i++) step();
    counters_.count = [](unsigned) { return WorkCount{}; };
    run();
    ASSERT_EQ(progress("kcryptd")->phase, "waiting");
    candidate_costs(1);
    set_scope("kcryptd", "numa");
    const auto before = asked();
    for (int i = 0; i < 10; i++) tick();
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(asked(), before) << "nothing is written";
    ASSERT_THAT(verdicts_->records(), SizeIs(1));
    EXPECT_EQ(last().reason, "an external writer wrote 'numa'");
}

TEST_F(TrialsFaults, WorkThatCannotBeReadIsNoLackOfTraffic) {
    wait_for_traffic();
    counters_.read_error = Error{ENOMEM, "BPF: Cannot allocate memory"};
    run();
    EXPECT_EQ(progress("kcryptd")->reason, "BPF: Cannot allocate memory");
}

// Once @default is settled, a follower need not sit out a rest that it was never the cause of.
TEST_F(TrialsFaults, WhoWaitsForTheDefaultIsNotPutToRest) {
    Policy policy = rule_for_all(test::fixed(Scope::cpu));
    policy.default_scope.manage = true;
    policy.default_scope.wish = test::fixed(Scope::smt);
    begin(policy);
    counters_.more = {{"kcryptd", 100'000}, {"@default", 100'000}};
    counters_.count = [](unsigned) { return WorkCount{}; };
    for (int i = 0; i < 40; i++) {
        tick();
        EXPECT_THAT(reason("kcryptd"), testing::Not(HasSubstr("not what it is to be"))) << i;
        run();
    }
    EXPECT_EQ(progress("@default")->phase, "waiting");
}

TEST_F(TrialsFaults, AKernelThatStoresAnotherWordEndsIt) {
    kernel_ = test::kernel_72();  // says that it has cache_shard, and has not
    begin(rule_for_all(test::fixed(Scope::cache_shard)));
    files_->prefixes = true;
    wait_for_traffic();
    run();
    ASSERT_THAT(verdicts_->records(), SizeIs(1));
    EXPECT_EQ(last().reason, "the kernel stored 'cache' instead");
    EXPECT_EQ(state("kcryptd"), State::unsupported);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(TrialsFaults, ByHandItTakesAScopeWhereThePlanChangesNothing) {
    begin(rule_for_all(test::leave()));
    const auto begun = trials_->order("kcryptd", "");
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().text, "kcryptd: the plan is what is there; name a scope with --arm");
    EXPECT_FALSE(counters_.attached);
    EXPECT_TRUE(trials_->order("kcryptd", "smt"));
}

}  // namespace
}  // namespace wq
