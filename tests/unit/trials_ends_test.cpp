// SPDX-License-Identifier: LGPL-2.1-or-later
// What can come between a trial and its verdict.
#include <gmock/gmock.h>

#include <cerrno>
#include <cstdint>

#include "fake_trials.h"
#include "tuner/trials.h"

namespace wq {
namespace {

using test::rule_for_all;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TrialsEnds : public test::TrialRig {
  protected:
    // In the second window of the third pair.
    void into_a_trial() {
        wait_for_traffic();
        for (int i = 0; i < 5 * 2 + 3; i++) step();
        ASSERT_EQ(state("kcryptd"), State::trial);
    }
    // BPF is denied, and the policy names a file beside it.
    void a_file_is_left() {
        tree_.write("run/p99", "12.5\n");
        Policy policy = tuner_->policy();
        policy.judge.counters = {{"latency", false}, {"file:/run/p99", false}};
        counters_.traffic_error = counters_.attach_error = Error{EPERM, "BPF is denied"};
        use(policy);
        tick();
    }
    void expect_cut_off(const std::string& why) {
        EXPECT_FALSE(trials_->due());
        EXPECT_FALSE(counters_.attached);
        ASSERT_THAT(verdicts_->records(), SizeIs(1));
        EXPECT_THAT(last().reason, HasSubstr(why));
        EXPECT_FALSE(last().judged);
        EXPECT_EQ(log_.count(Event::trial_cut_off), 1U);
    }
};

TEST_F(TrialsEnds, CpusThatGo) {
    into_a_trial();
    see(test::without(topology_, "3"));
    trials_->check();
    expect_cut_off("CPUs came or went");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(TrialsEnds, AForeignWriteBetweenTicks) {
    into_a_trial();
    set_scope("kcryptd", "numa");
    run();
    expect_cut_off("an external writer wrote 'numa'");
    EXPECT_EQ(scope("kcryptd"), "numa");
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(TrialsEnds, AForeignWriteSeenAtATick) {
    into_a_trial();
    set_scope("kcryptd", "numa");
    reconcile();
    expect_cut_off("an external writer wrote");
    EXPECT_EQ(scope("kcryptd"), "numa");
}

TEST_F(TrialsEnds, AWorkqueueThatVanishes) {
    into_a_trial();
    tree_.remove("sys/devices/virtual/workqueue/kcryptd");
    run();
    expect_cut_off("the workqueue vanished");
    EXPECT_FALSE(tuner_->targets().contains("kcryptd"));
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(TrialsEnds, AWorkqueueThatIsAnotherOne) {
    into_a_trial();
    recreate("kcryptd");
    reconcile();
    expect_cut_off("the workqueue vanished");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsEnds, APolicyThatLeavesTheTarget) {
    into_a_trial();
    use(guard(rule_for_all(test::leave())));
    expect_cut_off("the plan changed");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::leave);
}

TEST_F(TrialsEnds, OtherSettingsOfTheJudge) {
    into_a_trial();
    Policy policy = tuner_->policy();
    policy.judge.settings.max_pairs = 20;
    use(policy);
    expect_cut_off("the policy changed");
}

TEST_F(TrialsEnds, AReloadOfTheSamePolicyDoesNot) {
    into_a_trial();
    use(tuner_->policy());
    EXPECT_EQ(state("kcryptd"), State::trial);
    run();
    EXPECT_TRUE(last().judged);
}

TEST_F(TrialsEnds, AnOperatorsOrder) {
    into_a_trial();
    ASSERT_TRUE(tuner_->revert("kcryptd"));
    trials_->check();
    expect_cut_off("an operator's order");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    for (int i = 0; i < 4; i++) tick();
    EXPECT_EQ(state("kcryptd"), State::reverted);
}

TEST_F(TrialsEnds, NoneBeginsAgainstAnOrder) {
    counters_.more = {{"kcryptd", 100'000}};
    ASSERT_TRUE(tuner_->revert("kcryptd"));
    files_->asked.clear();
    for (int i = 0; i < 8; i++) tick();
    EXPECT_FALSE(trials_->due());
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_THAT(files_->asked, IsEmpty());
    ASSERT_TRUE(tuner_->unpin("kcryptd"));
    wait_for_traffic();
    EXPECT_TRUE(trials_->due());
}

// Closed and opened again while BPF is loaded: nothing of the new one was ever planned.
TEST_F(TrialsEnds, NoneBeginsOfAnotherWorkqueueOfThatName) {
    counters_.more = {{"kcryptd", 100'000}};
    counters_.on_attach = [this] { recreate("kcryptd"); };
    wait_for_traffic();
    EXPECT_FALSE(trials_->due());
    EXPECT_FALSE(counters_.attached);
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsEnds, NoneBeginsAgainstADefaultThatIsNotThereYet) {
    Policy policy = rule_for_all();
    policy.default_scope.manage = true;
    begin(policy);
    const auto begun = trials_->order("kcryptd", "cpu");
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().text, HasSubstr("@default is not what it is to be yet"));
    EXPECT_FALSE(counters_.attached);
}

// It has a verdict, but the kernel takes it no more.
TEST_F(TrialsEnds, ARefusedDefaultMovesNobodyWithAVerdictEither) {
    Policy policy = rule_for_all();
    policy.default_scope.manage = true;
    candidate_costs(0.7);
    begin(policy);
    counters_.more = {{"@default", 200'000}};
    wait_for_traffic();
    run();
    ASSERT_EQ(state("@default"), State::kept);
    tuner_->restore_all();
    files_->on_write = [](const auto& name, const auto&) { return name == kDefaultTarget ? EPERM : 0; };
    reconcile();
    reconcile();
    EXPECT_EQ(state("@default"), State::quarantined);
    EXPECT_EQ(state("kcryptd"), State::waiting) << reason("kcryptd");
}

TEST_F(TrialsEnds, ADefaultThatMoves) {
    ASSERT_TRUE(trials_->order("kcryptd", "cpu"));
    for (int i = 0; i < 5; i++) step();
    tree_.write(test::kDefaultPath, "system\n");
    reconcile();
    expect_cut_off("@default moved");
    EXPECT_EQ(scope("kcryptd"), "default (system)");
}

TEST_F(TrialsEnds, ADefaultThatMovesInItsOwnTrialDoesNotEndOneThatWaits) {
    Policy policy = rule_for_all(test::fixed(Scope::cpu));
    policy.default_scope.wish = test::fixed(Scope::smt);
    begin(policy);
    counters_.more = {{"kcryptd", 100'000}};
    wait_for_traffic();
    for (int i = 0; i < 5; i++) step();
    counters_.count = [](unsigned) { return WorkCount{}; };  // the load stops
    run();
    ASSERT_EQ(progress("kcryptd")->phase, "waiting");
    ASSERT_TRUE(trials_->order("@default", "smt"));
    while (default_scope() != "smt") step();
    trials_->check();
    EXPECT_TRUE(progress("kcryptd"));
    EXPECT_EQ(log_.count(Event::trial_cut_off), 0U);
}

// What they wrote stays; the half of the trial's that they did not write does not.
TEST_F(TrialsEnds, AForeignWriteOfOneHalf) {
    begin(rule_for_all({}, true));
    wait_for_traffic();
    while (scope("kcryptd") != "smt") step();
    ASSERT_EQ(strict("kcryptd"), "1");
    set_scope("kcryptd", "numa");
    run();
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(scope("kcryptd") + " " + strict("kcryptd"), "numa 0");

    counters_.more = {{"writeback", 100'000}};
    wait_for_traffic();
    while (scope("writeback") != "smt") step();
    tree_.write(test::wq_path("writeback", "affinity_strict"), "0\n");
    run();
    EXPECT_EQ(state("writeback"), State::external);
    EXPECT_EQ(scope("writeback") + " " + strict("writeback"), "default (cache) 0");
}

// Its value stays theirs, also for the next daemon, though we had not written yet.
TEST_F(TrialsEnds, WhatSomebodyElseWroteWhileItWaitedStaysTheirs) {
    set_scope("kcryptd", "numa");
    tick();
    ASSERT_EQ(state("kcryptd"), State::external);
    for (const bool restarted : {true, false}) {
        restarted ? begin(rule_for_all()) : use(tuner_->policy());
        for (int i = 0; i < 4; i++) tick();
        EXPECT_EQ(state("kcryptd"), State::external) << restarted;
        EXPECT_EQ(scope("kcryptd"), "numa");
    }
    set_scope("kcryptd", "default (cache)");
    use(tuner_->policy());
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(TrialsEnds, NoneBeginsOfWhatCannotBeRead) {
    counters_.more = {{"kcryptd", 100'000}};
    tick();
    const std::string file = test::wq_path("kcryptd", "max_active");
    const std::string text = tree_.read(file);
    tree_.remove(file);
    tree_.add(test::Dir(file));
    for (int i = 0; i < 4; i++) tick();
    EXPECT_FALSE(trials_->due());
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_FALSE(trials_->order("kcryptd", ""));
    EXPECT_EQ(state("kcryptd"), State::waiting);
    tree_.remove(file);
    tree_.write(file, text);
    wait_for_traffic();
    EXPECT_TRUE(trials_->due());
}

TEST_F(TrialsEnds, TheSwitchToObserving) {
    into_a_trial();
    tuner_->observe("/etc/wq-tuned/disabled exists");
    reconcile();
    expect_cut_off("nothing is written any more");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
    files_->asked.clear();
    for (int i = 0; i < 8; i++) tick();
    EXPECT_FALSE(trials_->due());
    EXPECT_THAT(files_->asked, IsEmpty());
    EXPECT_THAT(verdicts_->records(), SizeIs(1));
    tuner_->observe("");
    tick();
    tick();
    EXPECT_TRUE(trials_->due()) << "nothing else was in its way";
}

TEST_F(TrialsEnds, NoneBeginsInModeObserve) {
    Policy policy = guard(rule_for_all());
    policy.mode = Mode::observe;
    files_->asked.clear();
    counters_.asked.clear();
    use(policy);
    for (int i = 0; i < 8; i++) tick();
    EXPECT_FALSE(trials_->due());
    EXPECT_THAT(counters_.asked, IsEmpty());
    EXPECT_THAT(files_->asked, IsEmpty());
    EXPECT_THAT(verdicts_->records(), IsEmpty());
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_FALSE(tuner_->begin_trial("kcryptd", *tuner_->targets().at("kcryptd").step.trial));
    EXPECT_THAT(files_->asked, IsEmpty());
}

TEST_F(TrialsEnds, AWriteThatFails) {
    into_a_trial();
    files_->on_write = [](const std::string&, const std::string& word) { return word == "smt" ? EINVAL : 0; };
    run();
    expect_cut_off("not written");
    EXPECT_EQ(state("kcryptd"), State::quarantined);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    for (int i = 0; i < 4; i++) tick();
    EXPECT_THAT(verdicts_->records(), SizeIs(1));
}

TEST_F(TrialsEnds, TheDaemonThatDiesLeavesItToTheNextOne) {
    into_a_trial();
    while (scope("kcryptd") != "smt") step();
    EXPECT_EQ(on_disk().at("kcryptd").order, kTrial);
    begin(rule_for_all());
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(TrialsEnds, AForeignWriteOfOneOfOurWords) {
    into_a_trial();
    while (scope("kcryptd") != "smt") step();
    set_scope("kcryptd", "default (cache)");
    run();
    expect_cut_off("an external writer wrote 'default'");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::external);
}

TEST_F(TrialsEnds, AForeignWriteThatAStatusNoticed) {
    into_a_trial();
    while (scope("kcryptd") != "smt") step();
    set_scope("kcryptd", "default (cache)");
    const auto writes = asked();
    tuner_->look();
    while (step()) {
    }
    EXPECT_EQ(asked(), writes) << "hands off";
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsEnds, PodsThatBecomeUnknown) {
    into_a_trial();
    while (scope("kcryptd") != "smt") step();
    topology_error_ = "hwloc is at a loss";
    tuner_->topology_changed();
    reconcile();
    expect_cut_off("pods unknown");
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "what was in place was never decided upon";
    EXPECT_THAT(on_disk(), IsEmpty());
}

TEST_F(TrialsEnds, PodsThatBecomeUnknownInATrialByHand) {
    use(guard(rule_for_all(test::leave())));  // the plan says nothing of pods then
    ASSERT_TRUE(trials_->order("kcryptd", "cpu"));
    while (scope("kcryptd") != "cpu") step();
    topology_error_ = "hwloc is at a loss";
    tuner_->topology_changed();
    reconcile();
    expect_cut_off("pods unknown");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsEnds, APutBackThatFailsLeavesTheMarkOfATrial) {
    into_a_trial();
    while (scope("kcryptd") != "smt") step();
    files_->on_write = [](const std::string&, const std::string& word) {
        return word == "default" ? EIO : 0;
    };
    tuner_->observe("a switch");
    reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(on_disk().at("kcryptd").order, kTrial) << "goes back even where settings are kept";
}

TEST_F(TrialsEnds, AnOrderThatIsRefusedDoesNot) {
    into_a_trial();
    EXPECT_FALSE(tuner_->pin("kcryptd", "bogus"));
    EXPECT_FALSE(tuner_->pin("", "smt"));
    EXPECT_FALSE(tuner_->revert("nosuch"));
    trials_->check();
    EXPECT_EQ(state("kcryptd"), State::trial);
    ASSERT_TRUE(tuner_->pin("kcryptd", "cpu"));
    trials_->check();
    expect_cut_off("an operator's order");
    EXPECT_EQ(scope("kcryptd"), "cpu");
    EXPECT_EQ(state("kcryptd"), State::pinned);
}

TEST_F(TrialsEnds, AParkedOneIsToldOfToo) {
    counters_.count = [](unsigned) { return WorkCount{.items = 10, .latency = 1}; };
    wait_for_traffic();
    run();
    ASSERT_EQ(progress("kcryptd")->phase, "waiting");
    see(test::without(topology_, "3"));
    trials_->check();
    expect_cut_off("CPUs came or went");
    EXPECT_FALSE(progress("kcryptd"));
}

TEST_F(TrialsEnds, AWriteThatFailsForAMomentDoesNot) {
    into_a_trial();
    int failures = 2;
    files_->on_write = [&](const std::string&, const std::string&) { return failures-- > 0 ? EBUSY : 0; };
    run();
    EXPECT_TRUE(last().judged);
}

TEST_F(TrialsEnds, AWriteThatFailsAgainAndAgainIsTriedLessAndLess) {
    files_->on_write = [](const std::string& name, const std::string& word) {
        return name == "kcryptd" && word == "smt" ? EBUSY : 0;
    };
    counters_.more = {{"kcryptd", 100'000}};
    for (int i = 0; i < 4 * 60; i++) {  // an hour
        tick();
        run();
    }
    EXPECT_THAT(verdicts_->records(), SizeIs(testing::AllOf(testing::Ge(3U), testing::Le(12U))));
}

TEST_F(TrialsEnds, ALoadThatIsNeverEnoughIsTriedLessAndLess) {
    counters_.count = [](unsigned) { return WorkCount{.items = 1199, .latency = 1000}; };
    counters_.more = {{"kcryptd", 100'000}};
    for (int i = 0; i < 4 * 60; i++) {
        tick();
        run();
    }
    EXPECT_LT(asked(), 40U);
    EXPECT_GT(asked(), 5U);
}

TEST_F(TrialsEnds, AMomentsFailureToSeeTrafficIsNotForGood) {
    counters_.traffic_error = Error{EAGAIN, "the list changed while it was walked"};
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    counters_.traffic_error.reset();
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::trial);
}

// ---- pairs that are dropped

TEST_F(TrialsEnds, WhatMakesTwoMachinesOfOneDropsThePair) {
    const std::vector<std::function<void()>> happenings = {
        [&] { clocks_.suspended += 30'000'000'000; }, [&] { clocks_.wall -= 3'600'000'000'000; },
        [&] { trials_->cpus_changed(); },  // and are back before anybody looks
    };
    wait_for_traffic();
    for (unsigned n = 0; n < happenings.size(); n++) {
        step();
        happenings[n]();
        for (int i = 0; i < 4; i++) step();
        EXPECT_EQ(progress("kcryptd")->dropped, n + 1);
        EXPECT_EQ(progress("kcryptd")->pair, 1U);
    }
    for (int i = 0; i < 5; i++) step();
    EXPECT_EQ(progress("kcryptd")->pair, 2U);
}

TEST_F(TrialsEnds, AWindowThatLastedTooLongDropsThePair) {
    wait_for_traffic();
    step();
    now_ += 12'000'000;  // of a window of 8 s
    trials_->on_time();
    for (int i = 0; i < 3; i++) step();
    EXPECT_EQ(progress("kcryptd")->dropped, 1U);
}

TEST_F(TrialsEnds, ItemsThatWereLostDropThePairAndAreTold) {
    counters_.count = [](unsigned) { return WorkCount{.items = 10'000, .latency = 1000, .lost = 600}; };
    wait_for_traffic();
    for (int i = 0; i < 5; i++) step();
    EXPECT_EQ(progress("kcryptd")->dropped, 1U);
    EXPECT_EQ(progress("kcryptd")->lost, 1200U);
}

TEST_F(TrialsEnds, AValueThatIsNoPositiveNumberDropsThePair) {
    for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
        counters_.count = [bad](unsigned slot) {
            return WorkCount{.items = 10'000, .latency = slot == 1 ? bad : 5};
        };
        ASSERT_TRUE(trials_->order("kcryptd", ""));
        for (int i = 0; i < 5; i++) step();
        EXPECT_EQ(progress("kcryptd")->dropped, 1U) << bad;
        trials_->cancel_all("next");
    }
}

TEST_F(TrialsEnds, TenPairsDroppedRunningEndIt) {
    counters_.read_error = Error{EIO, "the map is gone"};
    wait_for_traffic();
    run();
    // No items were counted either: that alone would be a reason to wait.
    EXPECT_EQ(progress("kcryptd")->phase, "waiting");
    counters_.read_error.reset();
    counters_.count = [](unsigned) { return WorkCount{.items = 10'000, .latency = 0}; };
    wait_for_traffic();
    wait_for_traffic();
    run();
    EXPECT_THAT(last().reason, HasSubstr("10 pairs running were dropped: latency is not a positive number"));
    EXPECT_EQ(last().outcome, TrialOutcome::inconclusive);
}

// ---- what there is to count with

TEST_F(TrialsEnds, NothingToJudgeByMeansThatNothingIsTried) {
    counters_.traffic_error = Error{EPERM, "BPF is denied"};
    for (int i = 0; i < 5; i++) tick();
    EXPECT_EQ(asked(), 0U);
    reconcile();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("nothing to judge by: BPF is denied"));
    EXPECT_THAT(counters_.asked, SizeIs(1)) << "asked once, and again after a reload";
    counters_.traffic_error.reset();
    use(tuner_->policy());
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::trial);
}

TEST_F(TrialsEnds, WhatIsLeftJudgesWhereBpfIsDenied) {
    a_file_is_left();
    ASSERT_EQ(state("kcryptd"), State::trial);
    EXPECT_THAT(progress("kcryptd")->reason, HasSubstr("BPF is denied"));
    while (trials_->due()) {
        tree_.write("run/p99", scope("kcryptd") == "smt" ? "20\n" : "10\n");
        step();
    }
    EXPECT_EQ(last().outcome, TrialOutcome::regressed);
    EXPECT_THAT(last().standing.counter, HasSubstr("file:"));
}

TEST_F(TrialsEnds, WhatIsLeftHasItsVerdictsAfterARestartAndAReload) {
    a_file_is_left();
    const Policy policy = tuner_->policy();
    while (trials_->due()) {
        tree_.write("run/p99", scope("kcryptd") == "smt" ? "10\n" : "20\n");
        step();
    }
    ASSERT_EQ(state("kcryptd"), State::kept);
    files_->asked.clear();
    use(policy);
    EXPECT_EQ(state("kcryptd"), State::kept);
    begin(policy);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_THAT(files_->asked, IsEmpty());
}

// ---- when

TEST_F(TrialsEnds, NothingBeginsBeforeTheRandomDelayIsOver) {
    Policy policy = tuner_->policy();
    policy.judge.jitter = std::chrono::seconds(3600);
    coin_ = 7;
    use(policy);
    const std::uint64_t start = now_;
    while (state("kcryptd") != State::trial && now_ < start + 7'200'000'000) tick();
    EXPECT_GT(now_ - start, 60'000'000U);
    EXPECT_LE(now_ - start, 3'660'000'000U);
}

TEST_F(TrialsEnds, OutsideItsHoursATrialNeitherBeginsNorGoesOn) {
    Policy policy = tuner_->policy();
    policy.judge.hours = {.begin = 22 * 60, .end = 6 * 60};
    use(policy);
    wait_for_traffic();
    reconcile();
    EXPECT_THAT(reason("kcryptd"), HasSubstr("hours"));
    minute_ = 23 * 60;
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    minute_ = 6 * 60;
    for (int i = 0; i < 5; i++) step();
    EXPECT_EQ(progress("kcryptd")->phase, "waiting");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(progress("kcryptd")->standing.pairs, 1U);
    minute_ = 22 * 60;
    wait_for_traffic();
    EXPECT_EQ(progress("kcryptd")->pair, 2U);
}

// ---- by hand

TEST_F(TrialsEnds, AnOrderIsRefusedWhereItCannotBe) {
    EXPECT_THAT(trials_->order("nosuch", "smt").error().text, HasSubstr("no such target"));
    EXPECT_THAT(trials_->order("kcryptd", "smtt").error().text, HasSubstr("not a scope"));
    EXPECT_THAT(trials_->order("kcryptd", "cache_shard").error().text, HasSubstr("this kernel has no"));
    ASSERT_TRUE(tuner_->pin("kcryptd", "smt"));
    EXPECT_THAT(trials_->order("kcryptd", "cpu").error().text, HasSubstr("pinned"));
    ASSERT_TRUE(tuner_->unpin("kcryptd"));
    ASSERT_TRUE(trials_->order("kcryptd", "cpu"));
    EXPECT_THAT(trials_->order("writeback", "cpu").error().text, HasSubstr("one at a time"));
}

TEST_F(TrialsEnds, AnOrderedTrialTellsAndLeavesThePolicyToDecide) {
    candidate_costs(0.5);
    ASSERT_TRUE(trials_->order("kcryptd", "cpu"));
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::improved);
    EXPECT_EQ(last().key.candidate, "cpu");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

}  // namespace
}  // namespace wq
