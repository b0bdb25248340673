// SPDX-License-Identifier: LGPL-2.1-or-later
// Trials from traffic to verdict, and what becomes of the target.
#include "tuner/trials.h"

#include <gmock/gmock.h>

#include <cstdint>

#include "fake_trials.h"

namespace wq {
namespace {

using test::fixed;
using test::rule_for_all;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class TrialsTest : public test::TrialRig {};

TEST_F(TrialsTest, GuardLeavesATargetAtItsBaselineUntilItHasTraffic) {
    counters_.more.clear();
    for (int i = 0; i < 10; i++) tick();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    EXPECT_EQ(asked(), 0U);
    EXPECT_FALSE(counters_.attached);
}

TEST_F(TrialsTest, TrafficIsWhatAWindowNeeds) {
    counters_.more = {{"kcryptd", 2249}};  // in 15 s; the 8 s of a window that count need 1200
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::waiting);
    counters_.more = {{"kcryptd", 2250}};
    tick();
    EXPECT_EQ(state("kcryptd"), State::trial);
}

TEST_F(TrialsTest, IsolatedCpusAreWatchedMeanwhile) {
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    EXPECT_TRUE(counters_.watched_cpus.empty());
    run();
    tree_.write("sys/devices/system/cpu/nohz_full", "6-7\n");
    tree_.write("sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n");
    tree_.write("sys/fs/cgroup/rt/cpuset.cpus.effective", "2\n");
    ASSERT_TRUE(trials_->order("kcryptd", "numa"));
    EXPECT_EQ(counters_.watched_cpus.list(), "2,6-7");
}

TEST_F(TrialsTest, CountsSetBackToZeroByAWriteAreNoTraffic) {
    counters_.items = {{"kcryptd", 5'000'000}};
    counters_.more.clear();
    tick();
    counters_.items = {{"kcryptd", 10}};
    tick();
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(TrialsTest, EveryWindowBeginsWithAWriteOfItsArm) {
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    for (int i = 0; i < 5 * 4; i++) step();  // four pairs of five timers
    ASSERT_GE(asked(), 8U);
    for (std::size_t pair = 0; pair < 4; pair++) {
        const std::vector<std::string> two(files_->asked.begin() + static_cast<long>(2 * pair),
                                           files_->asked.begin() + static_cast<long>(2 * pair) + 2);
        EXPECT_THAT(two, testing::UnorderedElementsAre("kcryptd=default", "kcryptd=smt"));
    }
}

TEST_F(TrialsTest, TheCoinChoosesTheOrder) {
    std::map<std::string, int> first;
    wait_for_traffic();
    for (int i = 0; i < 5 * 15; i++) step();
    for (std::size_t pair = 0; pair < 15; pair++) first[files_->asked[2 * pair]]++;
    EXPECT_GT(first["kcryptd=default"], 2);
    EXPECT_GT(first["kcryptd=smt"], 2);
}

TEST_F(TrialsTest, AWindowIsWashoutAndCountAndAPairEndsWithADrain) {
    wait_for_traffic();
    const std::uint64_t start = now_;
    std::vector<std::uint64_t> times;
    for (int i = 0; i < 5; i++) {
        step();
        times.push_back((now_ - start) / 1'000'000);
    }
    EXPECT_THAT(times, ElementsAre(2U, 10U, 12U, 20U, 22U));
    EXPECT_THAT(counters_.asked, testing::IsSupersetOf({"attach kcryptd", "begin 0", "begin 1", "pause"}));
}

TEST_F(TrialsTest, WhatWasReadIsKeptSoThatTheEvidenceCanBeMadeAgain) {
    candidate_costs(1.3);
    wait_for_traffic();
    run();
    ASSERT_TRUE(last().settings);
    EXPECT_DOUBLE_EQ(last().settings->alpha, 0.025) << "of the first trial of these arms";
    const auto readings = read_readings(Paths{tree_.root()}, last());
    ASSERT_TRUE(readings) << readings.error().text;
    ASSERT_THAT(readings->pairs, SizeIs(last().standing.pairs));
    Trial again(*last().settings, readings->counters);
    std::optional<TrialVerdict> verdict;
    for (const auto& pair : readings->pairs) verdict = again.add({pair, {}});
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->outcome, TrialOutcome::regressed);
    EXPECT_DOUBLE_EQ(verdict->standing.log_regressed, last().standing.log_regressed);
}

TEST_F(TrialsTest, NothingThatIsPutBackWaitsForWhatWasRead) {
    const auto kept = [this] { return tree_.exists("var/lib/wq-tuned/readings"); };
    candidate_costs(1.3);
    wait_for_traffic();
    files_->on_write = [&](const auto&, const auto&) {
        EXPECT_FALSE(kept());
        return 0;
    };
    run();
    ASSERT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_TRUE(kept());
}

TEST_F(TrialsTest, AtTheDaemonsEndWhatWasReadIsKept) {
    wait_for_traffic();
    for (int i = 0; i < 7; i++) step();
    trials_->cancel_all("enough");
    const auto readings = read_readings(Paths{tree_.root()}, last());
    ASSERT_TRUE(readings) << readings.error().text;
    EXPECT_THAT(readings->pairs, SizeIs(1));
}

TEST_F(TrialsTest, ARegressionGoesBackToTheBaseline) {
    candidate_costs(1.3);
    wait_for_traffic();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::regressed);
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_THAT(reason("kcryptd"), HasSubstr("smt against cache: regressed, latency +30.0%"));
    EXPECT_EQ(log_.count(Event::verdict), 1U);
    EXPECT_FALSE(counters_.attached);
}

TEST_F(TrialsTest, AnImprovementIsKeptAndOutlivesARestart) {
    candidate_costs(0.8);
    wait_for_traffic();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::improved);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(target("kcryptd").step.verdict->outcome, TrialOutcome::improved);
    begin(rule_for_all());
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsTest, ATieIsKeptUnlessThePolicyAsksForAnImprovement) {
    wait_for_traffic();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::inconclusive);
    EXPECT_EQ(last().standing.pairs, 16U);
    EXPECT_EQ(state("kcryptd"), State::kept);
    Policy policy = tuner_->policy();
    policy.keep = Keep::if_improved;
    use(policy);
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsTest, AnEmergencyIsNeverKept) {
    candidate_costs(5);
    wait_for_traffic();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::inconclusive);
    EXPECT_EQ(last().reason, "emergency");
    EXPECT_EQ(last().standing.pairs, 2U);
    EXPECT_EQ(state("kcryptd"), State::reverted);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsTest, WorkThatStaysOnOldPoolsIsInconclusive) {
    counters_.count = [](unsigned) { return WorkCount{.items = 10'000, .latency = 1000, .stuck = 600}; };
    wait_for_traffic();
    run();
    EXPECT_EQ(last().outcome, TrialOutcome::inconclusive);
    EXPECT_EQ(last().reason, "work stays on old pools");
    EXPECT_EQ(last().standing.pairs, 0U);
    EXPECT_EQ(state("kcryptd"), State::reverted) << "nothing was learned of the plan";
}

TEST_F(TrialsTest, OneTrialAtATimeAndTurnsAreTaken) {
    counters_.count = [](unsigned) { return WorkCount{.items = 10, .latency = 1000}; };  // parked at once
    std::vector<std::string> turns;
    for (int i = 0; i < 12; i++) {
        tick();
        for (const char* name : {"kcryptd", "writeback"})
            if (state(name) == State::trial) turns.emplace_back(name);
        run();
    }
    EXPECT_THAT(turns, SizeIs(testing::Ge(4U)));
    for (std::size_t i = 1; i < turns.size(); i++) EXPECT_NE(turns[i], turns[i - 1]) << i;
}

TEST_F(TrialsTest, TheVerdictOfAClassHoldsForAllOfIt) {
    tree_.add(test::Dir("sys/devices/virtual/workqueue",
                        {test::workqueue("kcryptd-254:1-2", {.cpumask = "ffffff"}),
                         test::workqueue("kcryptd-254:10-3", {.cpumask = "ffffff"})}));
    candidate_costs(1.3);
    counters_.more = {{"kcryptd-254:1-2", 100'000}};
    wait_for_traffic();
    run();
    reconcile();
    EXPECT_EQ(state("kcryptd-254:1-2"), State::reverted);
    EXPECT_EQ(state("kcryptd-254:10-3"), State::reverted);
    EXPECT_EQ(state("kcryptd"), State::waiting);
}

TEST_F(TrialsTest, LoadThatStopsHalfwayIsWaitedFor) {
    wait_for_traffic();
    for (int i = 0; i < 5 * 5; i++) step();
    ASSERT_EQ(progress("kcryptd")->standing.pairs, 5U);
    counters_.count = [](unsigned) { return WorkCount{.items = 10, .latency = 99, .unfinished = 1}; };
    counters_.more.clear();
    for (int i = 0; i < 5; i++) step();
    EXPECT_FALSE(trials_->due());
    EXPECT_FALSE(counters_.attached);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_THAT(on_disk(), IsEmpty());
    EXPECT_EQ(progress("kcryptd")->phase, "waiting");
    for (int i = 0; i < 5; i++) tick();
    EXPECT_FALSE(trials_->due());
    EXPECT_EQ(progress("kcryptd")->reason, "too little traffic");
    candidate_costs(1);
    counters_.more = {{"kcryptd", 100'000}};
    tick();
    tick();
    EXPECT_EQ(state("kcryptd"), State::trial);
    EXPECT_EQ(progress("kcryptd")->pair, 6U);
    EXPECT_EQ(progress("kcryptd")->dropped, 1U);
    run();
    EXPECT_EQ(last().standing.pairs, 16U);
    EXPECT_EQ(verdicts_->begun(last().key), 1U);
}

TEST_F(TrialsTest, TheNthTrialHasLessAlphaAndMorePairs) {
    std::vector<unsigned> pairs;
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(trials_->order("kcryptd", "smt"));
        pairs.push_back(progress("kcryptd")->max_pairs);
        run();
    }
    EXPECT_THAT(pairs, ElementsAre(16U, 18U, 19U));  // 1, 3 and 6 times the evidence
    EXPECT_EQ(last().trial, 3U);
}

TEST_F(TrialsTest, AVerdictIsTriedAgainWhenItIsOldAndHoldsUntilThen) {
    candidate_costs(0.8);
    wait_for_traffic();
    run();
    ASSERT_EQ(state("kcryptd"), State::kept);
    counters_.more.clear();
    wall_ += 7 * 24 * 3600 - 3600;
    tick();
    EXPECT_FALSE(target("kcryptd").step.trial);
    wall_ += 7200;
    tick();
    EXPECT_TRUE(target("kcryptd").step.trial);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    candidate_costs(1.5);
    counters_.more = {{"kcryptd", 100'000}};
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::trial);
    run();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsTest, TheDefaultIsTriedFirstAndAloneThroughAThirdScope) {
    Policy policy = rule_for_all();
    policy.default_scope.manage = true;
    candidate_costs(1.3);
    begin(policy);
    wait_for_traffic();
    EXPECT_EQ(state("@default"), State::trial);
    EXPECT_EQ(state("kcryptd"), State::as_planned);
    step();
    EXPECT_THAT(files_->asked, ElementsAre("@default=cpu", testing::AnyOf("@default=smt", "@default=cache")));
    run();
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_EQ(state("@default"), State::reverted);
    // It moves nobody: its followers are tried for themselves.
    EXPECT_THAT(std::vector<std::string>(files_->asked.begin(), files_->asked.end()),
                Not(Contains("kcryptd=smt")));
    wait_for_traffic();
    EXPECT_EQ(state("kcryptd"), State::trial);
}

TEST_F(TrialsTest, AFollowersBaselineIsWhatTheDefaultIsByNow) {
    Policy policy = rule_for_all(fixed(Scope::cache));
    policy.default_scope = {.manage = true, .wish = fixed(Scope::smt), .origin = {}};
    candidate_costs(0.7);
    begin(policy);
    counters_.more = {{"@default", 200'000}};
    wait_for_traffic();
    run();
    ASSERT_EQ(state("@default"), State::kept);
    candidate_costs(1);
    counters_.more = {{"kcryptd", 100'000}};
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    EXPECT_EQ(progress("kcryptd")->arms.baseline.name(), "smt");
    EXPECT_EQ(progress("kcryptd")->arms.baseline.word, "default");
    EXPECT_EQ(progress("kcryptd")->arms.candidate.word, "cache");
}

TEST_F(TrialsTest, FollowersArePlannedAgainstWhatWonForTheDefault) {
    Policy policy = rule_for_all(fixed(Scope::smt));
    policy.mode = Mode::tune;
    policy.default_scope.manage = true;
    begin(policy);
    counters_.more = {{"@default", 200'000}};
    for (int i = 0; i < 8; i++) {
        tick();
        const auto p = progress("@default");
        candidate_costs(p && p->arms.candidate.scope == Scope::cpu ? 0.7 : 1.3);
        run();
    }
    ASSERT_EQ(default_scope(), "cpu");
    reconcile();
    EXPECT_EQ(target("kcryptd").plan.finding, Finding::change) << reason("kcryptd");
    EXPECT_EQ(target("kcryptd").step.trial->baseline.name(), "cpu");
}

TEST_F(TrialsTest, AStrictArmIsWrittenInEveryWindow) {
    begin(rule_for_all({}, true));
    wait_for_traffic();
    ASSERT_EQ(state("kcryptd"), State::trial);
    EXPECT_EQ(progress("kcryptd")->arms.candidate.name(), "smt strict");
    for (int i = 0; i < 5; i++) step();
    EXPECT_THAT(files_->asked, testing::IsSupersetOf({"kcryptd=smt", "kcryptd strict=1", "kcryptd=default",
                                                      "kcryptd strict=0"}));
    trials_->cancel_all("enough");
    EXPECT_EQ(strict("kcryptd"), "0");
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(TrialsTest, AForeignStrictnessIsFoundBeforeTheWordIsWritten) {
    begin(rule_for_all({}, true));
    wait_for_traffic();
    while (scope("kcryptd") != "smt") step();
    tree_.write(test::wq_path("kcryptd", "affinity_strict"), "0\n");
    run();
    EXPECT_EQ(state("kcryptd"), State::external);
    EXPECT_EQ(strict("kcryptd"), "0");
    tuner_->restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "the word was ours";
}

TEST_F(TrialsTest, TuneTriesAllDistinctScopesAndTheWinnerStays) {
    Policy policy = rule_for_all();
    policy.mode = Mode::tune;
    // system (as cache and numa here) is the baseline; smt and cpu are the others.
    counters_.count = [this](unsigned) {
        const std::string now = scope("kcryptd");
        return WorkCount{.items = 10'000, .latency = now == "cpu" ? 700.0 : now == "smt" ? 850.0 : 1000.0};
    };
    begin(policy);
    counters_.more = {{"kcryptd", 100'000}};
    for (int i = 0; i < 8; i++) {
        tick();
        // Counted at the end of the pair, when the file holds the second arm: read the arm by its slot.
        const auto p = progress("kcryptd");
        if (p)
            counters_.count = [p](unsigned slot) {
                const Scope s = slot == 0 ? p->arms.baseline.scope : p->arms.candidate.scope;
                return WorkCount{.items = 10'000,
                                 .latency = s == Scope::cpu   ? 700.0
                                            : s == Scope::smt ? 850.0
                                                              : 1000.0};
            };
        run();
    }
    EXPECT_EQ(scope("kcryptd"), "cpu");
    EXPECT_EQ(state("kcryptd"), State::kept);
    ASSERT_THAT(verdicts_->records(), SizeIs(2));
    EXPECT_EQ(verdicts_->records()[0].key.candidate, "smt");
    EXPECT_EQ(verdicts_->records()[1].key.baseline, "smt");
    EXPECT_EQ(verdicts_->records()[1].key.candidate, "cpu");
}

}  // namespace
}  // namespace wq
