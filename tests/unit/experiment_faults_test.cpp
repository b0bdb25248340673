// SPDX-License-Identifier: LGPL-2.1-or-later
// Experiments in which calls fail and disks do not answer.
#include <gmock/gmock.h>

#include <cerrno>

#include "fake_experiment.h"
#include "owned/writer.h"

namespace wq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ExperimentFaults : public test::ExperimentRig {
  protected:
    ExperimentFaults() {
        use_traffic({"kcryptd"});
        start(smt_alone());
    }
    void candidate_in_place() {
        ASSERT_TRUE(run_until([this] { return scope("kcryptd") == "smt"; }, 60));
    }
    void fail_next_writes(int count) {
        files_->on_write = [count](const auto&, const auto&) mutable { return count-- > 0 ? EBUSY : 0; };
    }
    // Stops as with on_exit = "keep".
    void stop() {
        experiment_->cancel_all("wq-tuned stopped");
        engine_->keep_all();
    }
    void restorer() {
        OwnedStore store(tree_.path("run/wq-tuned/owned.json"));
        ASSERT_TRUE(store.load());
        EXPECT_EQ(restore_all(*files_, store, log_, true), 0U);
    }
    [[nodiscard]] std::size_t verdicts_on_disk() const {
        VerdictStore store(tree_.path("var/lib/wq-tuned/verdicts.log"));
        (void)store.read();
        return store.records().size();
    }
};

// The write that takes it back fails with EBUSY: at the stop, after a revert, after a pin.
TEST_F(ExperimentFaults, ACandidateThatCannotBeTakenBackIsNotKept) {
    for (const std::string order : {"", "revert", "pin"}) {
        SCOPED_TRACE(order);
        start(smt_alone());
        candidate_in_place();
        fail_next_writes(order.empty() ? 1 : 2);
        if (order == "revert") {
            ASSERT_FALSE(engine_->revert("kcryptd"));
        } else if (order == "pin") {
            ASSERT_FALSE(engine_->pin("kcryptd", "numa"));
            EXPECT_EQ(on_disk().at("kcryptd").holder, Holder::slot);
            ASSERT_EQ(scope("kcryptd"), "smt");
        }
        stop();
        if (order != "pin") {  // there the stop itself takes it back
            ASSERT_EQ(scope("kcryptd"), "smt");
        }
        restorer();
        EXPECT_EQ(scope("kcryptd"), "default (cache)");
        EXPECT_THAT(on_disk(), IsEmpty());
    }
}

TEST_F(ExperimentFaults, NothingBeginsWhereTheBaselineCannotBeSaved) {
    no_state_folder();
    run(60);
    EXPECT_EQ(asked(), 0U) << "nothing is written";
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_TRUE(run_until(
        [this] { return view("kcryptd")->waits.find("its baseline cannot be saved") != std::string::npos; },
        60));
    EXPECT_THAT(verdicts_->records(), IsEmpty());
    tree_.remove("run/wq-tuned");
    run(300);
    EXPECT_GT(experiment_->totals().pairs, 0U);
}

// The disk may be the device that the candidate slows down.
TEST_F(ExperimentFaults, TheCandidateIsTakenBackBeforeItsVerdictIsWritten) {
    costs("smt", 2);
    std::size_t written = 99;
    files_->on_write = [&](const std::string&, const std::string& word) {
        if (word == "default") written = verdicts_on_disk();
        return 0;
    };
    ASSERT_TRUE(run_to_verdict());
    ASSERT_EQ(last().outcome, Judgement::regressed);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(written, 0U) << "records on disk when the last write was made";
    EXPECT_EQ(verdicts_on_disk(), 1U);
}

TEST_F(ExperimentFaults, NothingBeginsWhereTheLedgerCannotBeWritten) {
    tree_.write("var/lib/wq-tuned", "no folder");
    run(90);
    EXPECT_THAT(experiment_->why_no_slot(), HasSubstr("the ledger cannot be written"));
    const std::uint64_t slots = experiment_->totals().slots;
    run(60);
    EXPECT_EQ(experiment_->totals().slots, slots);
    EXPECT_FALSE(experiment_->order("kcryptd", ""));
    tree_.remove("var/lib/wq-tuned");
    run(120);
    EXPECT_GT(experiment_->totals().slots, slots);
}

TEST_F(ExperimentFaults, WorkThatCannotBeReadDropsThePair) {
    counters_.read_error = Error{EIO, "no count"};
    run(30);
    EXPECT_EQ(experiment_->totals().pairs, 0U);
    EXPECT_GT(experiment_->totals().pairs_dropped, 2U);
    run(600);
    EXPECT_THAT(view("kcryptd")->waits, HasSubstr("10 consecutive pairs were dropped: no count"));
}

// If BPF does not find one workqueue, the others still get their pairs.
TEST_F(ExperimentFaults, CountersThatCannotBeAttachedToOneAreAttachedToTheOthers) {
    use_traffic({"kcryptd", "writeback"});
    counters_.on_attach = [this] {
        const std::string& asked = counters_.asked.back();
        counters_.attach_error.reset();
        if (asked.find("kcryptd") != std::string::npos) counters_.attach_error = Error{ENOENT, "no kcryptd"};
    };
    run(120);
    EXPECT_GT(experiment_->totals().pairs, 3U);
    EXPECT_EQ(entry("kcryptd", "cache", "smt"), nullptr);
    EXPECT_NE(entry("writeback", "cache", "smt"), nullptr);
}

TEST_F(ExperimentFaults, NoneBeginsOfWhatCannotBeRead) {
    const std::string file = test::wq_path("kcryptd", "max_active");
    const std::string text = tree_.read(file);
    tree_.remove(file);
    tree_.add(test::Dir(file));
    run(60);
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_FALSE(experiment_->order("kcryptd", ""));
    tree_.remove(file);
    tree_.write(file, text);
    EXPECT_TRUE(run_to_slot());
}

}  // namespace
}  // namespace wq
