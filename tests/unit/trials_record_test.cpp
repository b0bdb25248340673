// SPDX-License-Identifier: LGPL-2.1-or-later
// Trials, and a disk that is slow, full or gone.
#include <gmock/gmock.h>

#include <algorithm>

#include "fake_trials.h"
#include "manual_writer.h"
#include "tuner/trials.h"

namespace wq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kFolder = "var/lib/wq-tuned";
constexpr const char* kVerdicts = "var/lib/wq-tuned/verdicts.json";

class TrialsRecord : public test::TrialRig {
  protected:
    TrialsRecord() { counters_.more = {{"kcryptd", 100'000}}; }  // the other one has no turn
    void another_daemon() {
        begin(Policy(tuner_->policy()));
        counters_.more = {{"kcryptd", 100'000}};
    }
    // From now on the disk answers when slow_.answer() is called.
    void slow_disk() {
        record_ = &slow_;
        another_daemon();
    }
    void until_asked() {
        for (int i = 0; i < 20 && slow_.waiting() == 0; i++) tick();
        ASSERT_EQ(slow_.waiting(), 1U);
    }
    void break_disk() {
        tree_.remove(kFolder);
        tree_.write(kFolder, "not a folder");
    }
    void mend_disk() { tree_.remove(kFolder); }
    [[nodiscard]] VerdictStore on_the_disk() const {
        VerdictStore out(tree_.path(kVerdicts));
        EXPECT_TRUE(out.read());
        return out;
    }
    [[nodiscard]] unsigned begun_on_disk() const {
        return on_the_disk().begun(tuner_->key_for(target("kcryptd").now, arms()));
    }
    [[nodiscard]] Arms arms() const {
        const Workqueue before = tuner_->as_before_us(target("kcryptd"));
        return {baseline_arm(before, target("kcryptd").plan), planned_arm(before, target("kcryptd").plan)};
    }
    [[nodiscard]] std::ptrdiff_t times_said(const std::string& text) const {
        return std::ranges::count_if(
            log_.lines, [&](const LogLine& line) { return line.text.find(text) != std::string::npos; });
    }

    test::ManualWriter slow_;
};

// The disk may be on the very device that the candidate slows down.
TEST_F(TrialsRecord, TheCandidateIsTakenBackBeforeItsVerdictIsWritten) {
    candidate_costs(2);
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    std::size_t written = 99;
    files_->on_write = [&](const std::string&, const std::string& word) {
        if (word == "default") written = on_the_disk().records().size();
        return 0;
    };
    run();
    ASSERT_EQ(last().outcome, TrialOutcome::regressed);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(written, 0U) << "records on disk when the last write was made";
    EXPECT_THAT(on_the_disk().records(), SizeIs(1));
}

TEST_F(TrialsRecord, SoItIsWhereItIsCutOffOrParked) {
    slow_disk();
    until_asked();
    slow_.answer();
    while (scope("kcryptd") != "smt") ASSERT_TRUE(step());
    trials_->cancel_all("enough");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_the_disk().records(), IsEmpty());
    slow_.answer();
    EXPECT_THAT(on_the_disk().records(), SizeIs(1));
}

TEST_F(TrialsRecord, ATrialWaitsForTheRecordOfItsBeginning) {
    slow_disk();
    until_asked();
    const auto writes = asked();
    EXPECT_FALSE(trials_->due()) << "nothing but the disk is waited for";
    EXPECT_EQ(progress("kcryptd")->phase, "recording");
    EXPECT_NE(state("kcryptd"), State::trial);
    EXPECT_EQ(asked(), writes);
    EXPECT_THAT(on_disk(), IsEmpty());
    slow_.answer();
    EXPECT_EQ(begun_on_disk(), 1U);
    ASSERT_TRUE(step());
    EXPECT_EQ(state("kcryptd"), State::trial);
    EXPECT_EQ(asked(), writes + 1);
    candidate_costs(2);
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::regressed);
}

TEST_F(TrialsRecord, ADiskThatDoesNotAnswerDelaysTheTrialAndNothingElse) {
    slow_disk();
    until_asked();
    for (int i = 0; i < 3; i++) tick();
    EXPECT_FALSE(counters_.attached) << "no counter stays for that long";
    EXPECT_FALSE(progress("kcryptd"));
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    reconcile();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"),
                HasSubstr("waiting: the record of trials cannot be written: the disk has not answered for"));
    slow_.answer();
    tick();
    slow_.answer();
    EXPECT_EQ(begun_on_disk(), 0U) << "what never began pays no alpha";
    until_asked();
    slow_.answer();
    ASSERT_TRUE(step());
    EXPECT_EQ(state("kcryptd"), State::trial);
    EXPECT_EQ(begun_on_disk(), 1U);
}

TEST_F(TrialsRecord, AVerdictThatIsStillBeingWrittenIsActedUponAndNothingNewBegins) {
    slow_disk();
    until_asked();
    slow_.answer();
    candidate_costs(2);
    run();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    counters_.more["writeback"] = 100'000;
    for (int i = 0; i < 5; i++) tick();
    EXPECT_FALSE(trials_->running());
    EXPECT_THAT(reason("writeback"), HasSubstr("the disk has not answered"));
    const auto refused = trials_->order("kcryptd", "cpu");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("the record of trials cannot be written"));
    slow_.answer();
    EXPECT_THAT(on_the_disk().records(), SizeIs(1));
    EXPECT_TRUE(read_readings(Paths{tree_.root()}, last()));
    EXPECT_TRUE(trials_->order("kcryptd", "cpu"));
}

TEST_F(TrialsRecord, NothingBeginsWhereTheRecordCannotBeWritten) {
    break_disk();
    const auto writes = asked();
    for (int i = 0; i < 40; i++) tick();
    EXPECT_EQ(asked(), writes) << "nothing is written to /sys";
    EXPECT_FALSE(counters_.attached);
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(reason("kcryptd"), HasSubstr("waiting: the record of trials cannot be written: "));
    EXPECT_THAT(reason("kcryptd"), HasSubstr("Not a directory"));
    EXPECT_EQ(times_said("what is learned may be forgotten, and no trial begins"), 1);
    const auto refused = trials_->order("kcryptd", "cpu");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("kcryptd: the record of trials cannot be written: "));
    mend_disk();
    for (int i = 0; i < 3; i++) tick();
    EXPECT_EQ(state("kcryptd"), State::trial) << reason("kcryptd");
    EXPECT_EQ(begun_on_disk(), 1U) << "40 tries paid nothing";
}

TEST_F(TrialsRecord, AnOrderIsRefusedWhereTheRecordCannotBeWritten) {
    break_disk();
    const auto refused = trials_->order("kcryptd", "cpu");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("the record of trials cannot be written: "));
    EXPECT_FALSE(trials_->running());
    EXPECT_FALSE(counters_.attached);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsRecord, AVerdictThatCannotBeSavedIsActedUponAndWrittenLater) {
    candidate_costs(2);
    wait_for_traffic();
    break_disk();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::regressed);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(times_said("a trial's pairs are not kept"), 1);
    EXPECT_EQ(times_said("what is learned may be forgotten"), 1);
    mend_disk();
    tick();
    EXPECT_THAT(on_the_disk().records(), SizeIs(1));
}

TEST_F(TrialsRecord, ATrialThatCannotBeginAfterAllPaysNothing) {
    slow_disk();
    until_asked();
    tree_.remove("run/wq-tuned");
    slow_.answer();
    ASSERT_TRUE(step());
    EXPECT_FALSE(trials_->running());
    EXPECT_FALSE(counters_.attached);
    EXPECT_THAT(reason("kcryptd"), testing::Not(HasSubstr("trial of")));
    tree_.add(test::Dir("run/wq-tuned"));
    tick();
    slow_.answer();
    EXPECT_EQ(begun_on_disk(), 0U);
}

TEST_F(TrialsRecord, WhatComesInBetweenKeepsItFromBeginning) {
    const std::vector<std::function<void()>> happenings = {
        [&] { ASSERT_TRUE(tuner_->revert("kcryptd")); },
        [&] { see(test::without(topology_, "3")); },
        [&] { set_scope("kcryptd", "numa"); },
        [&] { trials_->cancel_all("wq-tuned stopped"); },
    };
    slow_disk();
    for (const auto& happens : happenings) {
        until_asked();
        happens();
        reconcile();
        slow_.answer();
        EXPECT_FALSE(step());
        EXPECT_FALSE(trials_->running());
        EXPECT_FALSE(counters_.attached);
        set_scope("kcryptd", "default (cache)");
        topology_ = test::machine({.cores = 12, .threads = 2});
        tree_.remove("run/wq-tuned");
        tree_.add(test::Dir("run/wq-tuned"));
        another_daemon();
    }
    EXPECT_THAT(verdicts_->records(), IsEmpty()) << "a trial that did not begin has no end";
}

TEST_F(TrialsRecord, MemoryIsHeldWhileACandidateMayBeInPlace) {
    EXPECT_FALSE(held_);
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    EXPECT_TRUE(held_);
    candidate_costs(2);
    files_->on_write = [&](const auto&, const auto&) {
        EXPECT_TRUE(held_) << "the last write too";
        return 0;
    };
    run();
    EXPECT_FALSE(held_);
}

}  // namespace
}  // namespace wq
