// SPDX-License-Identifier: LGPL-2.1-or-later
// What ends a slot for a target, what drops a pair, and what prevents slots.
#include <gmock/gmock.h>

#include <cerrno>

#include "fake_experiment.h"

namespace wq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ExperimentEnds : public test::ExperimentRig {
  protected:
    ExperimentEnds() { start(smt_alone()); }
    // Runs until the first arms of a slot are in place.
    void into_slot() {
        ASSERT_TRUE(run_to_slot());
        step();
        step();
        step();
    }
    // Writes of WORD to kcryptd fail with CODE.
    void refuse(const char* word, int code) {
        files_->on_write = [=](const std::string& name, const std::string& now) {
            return name == "kcryptd" && now == word ? code : 0;
        };
    }
    // The order for kcryptd was cut off, and its verdict says why.
    void expect_told(const char* candidate, const char* reason) {
        ASSERT_FALSE(verdicts_->records().empty());
        EXPECT_FALSE(last().judged);
        EXPECT_EQ(last().key.candidate, candidate);
        EXPECT_THAT(last().reason, HasSubstr(reason));
    }
    [[nodiscard]] std::uint64_t pairs_of(const std::string& kind) const {
        const LedgerEntry* one = entry(kind, "cache", "smt");
        return one == nullptr ? 0 : one->columns[0].worse.count;
    }
    [[nodiscard]] std::uint64_t pairs() const { return experiment_->totals().pairs; }
    [[nodiscard]] std::uint64_t dropped() const { return experiment_->totals().pairs_dropped; }
};

// The counters identify a workqueue by its address.
TEST_F(ExperimentEnds, AWorkqueueOfTheSameNameIsAttachedAnew) {
    run_slot();
    const auto attached = [this] {
        return std::ranges::count_if(counters_.asked, [](const auto& a) { return a.starts_with("attach"); });
    };
    const auto before = attached();
    recreate("writeback");
    reconcile();
    run_slot();
    EXPECT_EQ(attached(), before + 1);
}

TEST_F(ExperimentEnds, AnotherSchedulerIsAnotherComparison) {
    run_slot();
    tree_.add(test::Dir("sys/kernel/sched_ext", {test::File("state", "enabled\n"),
                                                 test::Dir("root", {test::File("ops", "lavd\n")})}));
    run_slot();
    run_slot();
    EXPECT_EQ(entry("kcryptd", "cache", "smt")->columns[0].worse.count, 1U);
    EXPECT_EQ(experiment_->ledger().entries().size(), 4U);
    into_slot();
    tree_.write("sys/kernel/sched_ext/state", "disabled\n");
    const std::uint64_t known = pairs();
    run_slot();
    EXPECT_EQ(pairs(), known) << "in the middle of a slot: no pair of either";
}

// If an operator disables writes because a window does harm, that window must still count.
TEST_F(ExperimentEnds, WhatEndsTheSlotAtOnceCountsAgainstTheArmThatRan) {
    for (int i = 0; i < 3; i++) run_slot();
    into_slot();
    ASSERT_TRUE(parts_->orders.pin("kcryptd", "numa"));
    experiment_->check();
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(pairs_of("kcryptd"), 4U);
    use(test::rule_for_all(test::leave()));
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_EQ(pairs_of("writeback"), 4U);
    EXPECT_EQ(scope("writeback"), "default (cache)");
    use(smt_alone());
    into_slot();
    parts_->targets.observe("a test");
    reconcile();
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_EQ(scope("writeback"), "default (cache)");
    EXPECT_EQ(pairs_of("writeback"), 5U);
    run(60);
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_FALSE(counters_.attached);
    parts_->targets.observe("");
    reconcile();
    into_slot();
    const std::uint64_t known = pairs_of("writeback");
    experiment_->cancel_all("wq-tuned stopped");
    EXPECT_EQ(scope("writeback"), "default (cache)");
    EXPECT_FALSE(tree_.exists("run/wq-tuned/slot.json"));
    start(smt_alone());
    EXPECT_EQ(view("writeback")->standing.pairs, known + 1);
}

TEST_F(ExperimentEnds, WhatDisturbsBothWindowsDropsThePair) {
    tree_.write("proc/stat", "cpu 0 0 0 1000 0 0 0 0\n");
    const std::function<void()> changes[] = {
        [this] { experiment_->cpus_changed(); }, [this] { clocks_.suspended += 600'000'000; },
        [this] { clocks_.wall -= 600'000'000; },
        [this] { tree_.write("proc/stat", "cpu 0 0 0 1900 0 0 0 100\n"); },  // stolen time
    };
    for (const auto& change : changes) {
        const std::uint64_t before = dropped();
        into_slot();
        change();
        run_slot();
        EXPECT_EQ(pairs(), 0U);
        EXPECT_EQ(dropped(), before + 2) << &change - changes;
        if (before > 0) continue;
        EXPECT_THAT(experiment_->why_no_slot(), HasSubstr("CPUs came or went"));
    }
    run_slot();
    EXPECT_EQ(pairs(), 2U);
}

TEST_F(ExperimentEnds, AWriteThatFailsIsTriedLessAndLess) {
    refuse("smt", EBUSY);
    run(3600);
    EXPECT_LT(experiment_->totals().cut_off, 12U);
    EXPECT_GT(experiment_->totals().cut_off, 3U);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

// kill -9 in a window: the next daemon finds the record of the slot, and the window counts against the arm
// that was in place.
TEST_F(ExperimentEnds, ACrashCountsAgainstTheArmThatRanOnce) {
    for (int i = 0; i < 15; i++) run_slot();
    into_slot();
    const std::string in_place = word_of("kcryptd");
    const auto before = entry("kcryptd", "cache", "smt")->columns[0].worse.count;
    start(smt_alone());
    const auto& column = entry("kcryptd", "cache", "smt")->columns[0];
    EXPECT_LE(column.worse.count, before + 1) << "a minute of pairs may be lost";
    EXPECT_EQ(column.last.back(), in_place == "smt" ? column.largest : -column.largest);
    const auto pairs = column.worse.count;
    start(smt_alone());
    EXPECT_EQ(experiment_->totals().windows_lost, 0U);
    EXPECT_LE(entry("kcryptd", "cache", "smt")->columns[0].worse.count, pairs);
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "put back as that of a slot";
}

TEST_F(ExperimentEnds, EachConditionKeepsSlotsFromBeginning) {
    const auto measured = [this] {
        const std::uint64_t before = experiment_->totals().slots;
        run(60);
        return experiment_->totals().slots > before;
    };
    system_state_ = "starting";
    uptime_ = 60;
    start(smt_alone());
    EXPECT_FALSE(measured());
    EXPECT_EQ(experiment_->why_no_slot(), "systemd is 'starting'");
    system_state_ = "degraded";
    run(61);
    EXPECT_TRUE(measured());
    minute_ = 60;
    Policy policy = parts_->targets.policy();
    policy.judge.hours = {120, 180};
    use(policy);
    EXPECT_FALSE(measured());
    EXPECT_EQ(experiment_->why_no_slot(), "outside judge.hours");
    EXPECT_EQ(view("kcryptd")->waits, "outside judge.hours");
    minute_ = 130;
    EXPECT_TRUE(measured());
    tree_.add(test::Dir("proc/pressure"));
    tree_.write("proc/pressure/memory", "some avg10=5.00 avg60=0\nfull avg10=0.00\n");
    EXPECT_FALSE(measured());
    tree_.write("proc/pressure/memory", "some avg10=0.00 avg60=0\nfull avg10=0.00\n");
    EXPECT_TRUE(measured());
    policy.judge.settle = std::chrono::seconds(36'000);
    use(policy);
    EXPECT_FALSE(measured());
    EXPECT_THAT(experiment_->why_no_slot(), HasSubstr("settling after boot"));
}

TEST_F(ExperimentEnds, AFirstPairUnderAnotherPolicyLeavesNoEntry) {
    for (const Mode mode : {Mode::tune, Mode::observe}) {
        start(smt_alone());
        into_slot();
        Policy policy = smt_alone();
        policy.mode = mode;
        policy.judge.settings.tolerance = 0.5;
        use(policy);
        EXPECT_FALSE(experiment_->is_measuring());
        EXPECT_THAT(experiment_->ledger().entries(), IsEmpty());
    }
}

TEST_F(ExperimentEnds, NothingBeginsBeforeTheRandomDelayIsOver) {
    Policy policy = smt_alone();
    policy.judge.jitter = std::chrono::seconds(1000);
    random_ = Random(5);
    start(policy);
    EXPECT_THAT(experiment_->why_no_slot(), HasSubstr("random delay"));
    run(20);
    EXPECT_EQ(experiment_->totals().slots, 0U);
    run(1000);
    EXPECT_GT(experiment_->totals().slots, 0U);
}

TEST_F(ExperimentEnds, OnAHostWithIsolatedCpusOnlyWhatARuleNamesIsTried) {
    tree_.write("sys/devices/system/cpu/isolated", "2\n");
    Policy policy = smt_alone();
    policy.rules.insert(policy.rules.begin(), {{"kcrypt*"}, {}, {}, {"rules.toml", 9}});
    start(policy);
    ASSERT_TRUE(run_to_slot());
    EXPECT_THAT(counters_.targets, testing::ElementsAre("kcryptd"));
    EXPECT_FALSE(view("writeback"));
    EXPECT_THAT(reason("writeback"), HasSubstr("isolcpus= is set"));
}

TEST_F(ExperimentEnds, OnlyWhatIsJudgedIsAskedFor) {
    Policy policy = smt_alone();
    start(policy);
    ASSERT_TRUE(run_to_slot());
    EXPECT_EQ(counters_.wanted, Wanted{});
    for (const char* guard : {"tail", "enqueue"}) {
        experiment_->cancel_all("stop");
        policy.judge.guards = {{guard, 0.01}};
        start(policy);
        ASSERT_TRUE(run_to_slot());
        EXPECT_EQ(counters_.wanted.tails, std::string("tail") == guard);
        EXPECT_EQ(counters_.wanted.enqueue, std::string("enqueue") == guard);
    }
}

TEST_F(ExperimentEnds, WhereBpfIsDeniedWhatIsLeftJudges) {
    Policy policy = smt_alone();
    tree_.add(test::Dir("run/app", {test::File("cost", "5\n")}));
    policy.judge.counters = {{"latency", false}, {"file:/run/app/cost", false}};
    counters_.traffic_error = counters_.attach_error = Error{EPERM, "no BPF"};
    start(policy);
    EXPECT_EQ(log_.at_least(LOG_NOTICE), 1U);
    for (int i = 0; i < 2; i++) run_slot();
    EXPECT_EQ(view("kcryptd")->standing.pairs, 2U);
    EXPECT_EQ(view("kcryptd")->standing.counter, "file:/run/app/cost");
    policy.judge.counters = {{"latency", false}};
    start(policy);
    EXPECT_TRUE(experiment_->order("kcryptd", "smt")) << "nobody has counted yet";
    run(60);
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_THAT(view("kcryptd")->waits, HasSubstr("no counter can be measured: no BPF"));
    expect_told("smt", "no counter can be measured");
    EXPECT_FALSE(experiment_->order("kcryptd", "smt"));
}

TEST_F(ExperimentEnds, WhatCannotBeCountedIsPartOfTheComparison) {
    counters_.lacks = "no lock";
    for (int i = 0; i < 2; i++) run_slot();
    EXPECT_EQ(pairs(), 4U);
    const LedgerEntry* known = entry("kcryptd", "cache", "smt");
    EXPECT_THAT(known->key.counters, HasSubstr("no lock"));
    experiment_->cancel_all("stop");
    start(smt_alone());
    EXPECT_EQ(view("kcryptd")->standing.pairs, 2U) << "known before the counters are attached";
}

TEST_F(ExperimentEnds, AnOrderComparesAtOnceAndTellsWithoutDeciding) {
    experiment_->pause(true);
    run(30);
    costs("numa", 1.5);
    ASSERT_TRUE(experiment_->order("kcryptd", "numa"));
    ASSERT_TRUE(run_to_slot());
    EXPECT_EQ(view("kcryptd")->arms.candidate.name(), "numa");
    EXPECT_TRUE(view("kcryptd")->measuring);
    EXPECT_FALSE(experiment_->order("kcryptd", "")) << "one at a time";
    ASSERT_TRUE(run_to_verdict());
    EXPECT_EQ(last().key.candidate, "numa");
    EXPECT_EQ(last().outcome, Judgement::regressed);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    run(30);
    EXPECT_FALSE(experiment_->is_measuring());
    EXPECT_FALSE(experiment_->order("kcryptd", "cache_shard")) << "this kernel has none";
    EXPECT_FALSE(experiment_->order("none", ""));
}

TEST_F(ExperimentEnds, AnOrderComparesWithWhatIsInForce) {
    cost_ = [](const auto&, const std::string& word) { return word == "smt" ? 0.7 : 1.0; };
    use_traffic({"kcryptd"});
    ASSERT_TRUE(run_until([this] { return scope("kcryptd") == "smt" && !experiment_->is_measuring(); }));
    ASSERT_TRUE(experiment_->order("kcryptd", "numa"));
    EXPECT_EQ(view("kcryptd")->arms.reference.name(), "smt");
    EXPECT_EQ(view("kcryptd")->arms.candidate.name(), "numa");
}

TEST_F(ExperimentEnds, AnOrderThatCanHaveNoSlotIsRefusedOrEnds) {
    use_traffic({"kcryptd"});
    ASSERT_TRUE(experiment_->order("kcryptd", "numa"));
    parts_->targets.observe("wq_tuned=off");
    reconcile();
    expect_told("numa", "wq_tuned=off");
    EXPECT_FALSE(experiment_->order("kcryptd", "numa"));
}

TEST_F(ExperimentEnds, AnOrderThatLeavesTheSlotIsToldOf) {
    ASSERT_TRUE(experiment_->order("kcryptd", ""));
    run_slot();
    ASSERT_TRUE(run_to_slot());
    step();
    set_scope("kcryptd", "system");
    run_slot();
    expect_told("smt", "external writer");
    EXPECT_EQ(last().standing.pairs, 1U);
}

// ---- calls that fail, disks that do not answer

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
        parts_->engine.keep_all();
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
            ASSERT_FALSE(parts_->orders.revert("kcryptd"));
        } else if (order == "pin") {
            ASSERT_FALSE(parts_->orders.pin("kcryptd", "numa"));
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
    run(4 * 3600);
    EXPECT_GT(experiment_->totals().rests, 3U);
    const auto told = std::ranges::count_if(log_.lines, [](const auto& line) {
        return line.priority == LOG_NOTICE && line.text.find("were dropped: no count") != line.text.npos;
    });
    EXPECT_EQ(told, 1);
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
    EXPECT_THAT(view("kcryptd")->waits, HasSubstr("no kcryptd"));
    EXPECT_NE(entry("writeback", "cache", "smt"), nullptr);
    EXPECT_THAT(view("writeback")->waits, Not(HasSubstr("no kcryptd")));
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
