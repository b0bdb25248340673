// SPDX-License-Identifier: LGPL-2.1-or-later
// Experiments from traffic to verdict, and the state of the targets after them.
#include "experiment/experiment.h"

#include <gmock/gmock.h>

#include "fake_experiment.h"

namespace wq {
namespace {

using testing::Contains;

using ExperimentTest = test::ExperimentRig;

TEST_F(ExperimentTest, TrafficIsWhatAWindowNeeds) {
    pace_ = [](const std::string& name, const auto&) { return name == "kcryptd" ? 135.0 : 132.0; };
    ASSERT_TRUE(run_to_slot());  // requires 200 items in the measured 1.5 s
    EXPECT_THAT(counters_.targets, testing::ElementsAre("kcryptd"));
    EXPECT_EQ(state("kcryptd"), State::comparing);
    EXPECT_EQ(state("writeback"), State::waiting);
}

TEST_F(ExperimentTest, AllBusyTargetsAreInTheSlotEachWithItsOwnCoin) {
    std::map<std::string, int> orders;
    for (int i = 0; i < 20; i++) {
        ASSERT_TRUE(run_to_slot());
        run_slot();
        orders[word_["kcryptd"][0] + " " + word_["writeback"][0]]++;
    }
    EXPECT_THAT(orders, testing::SizeIs(4));
    EXPECT_THAT(counters_.asked, Contains("attach kcryptd writeback"));
    EXPECT_EQ(std::ranges::count(counters_.asked, "attach kcryptd writeback"), 1) << "they stay loaded";
}

TEST_F(ExperimentTest, AnImprovementIsKeptWatchedAndOutlivesARestart) {
    costs("smt", 0.8);
    start(smt_alone());
    ASSERT_TRUE(run_to_verdict());
    EXPECT_EQ(last().outcome, Judgement::improved);
    EXPECT_EQ(last().standing.pairs, 16U);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(view("kcryptd")->course, Course::watched);
    start(smt_alone());
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
    parts_->engine.restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
}

TEST_F(ExperimentTest, WorkThatStaysOnOldPoolsRestsOnThatTargetAlone) {
    start(smt_alone());
    stuck_ = 1500;
    ASSERT_TRUE(run_to_verdict());
    EXPECT_EQ(last().outcome, Judgement::undecided);
    EXPECT_EQ(last().reason, kStuckReason);
    run(600);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(view("kcryptd")->waits, kStuckReason);
    EXPECT_EQ(log_.count(Event::verdict), 2U) << "said once for each";
}

TEST_F(ExperimentTest, TheWatchGoesOnWhereWorkStaysOnOldPools) {
    costs("smt", 0.96);  // too small a gain for only one pair per day
    start(smt_alone());
    ASSERT_TRUE(run_to_verdict());
    run(10);
    const std::size_t said = log_.count(Event::verdict);
    stuck_ = 1500;
    ASSERT_TRUE(run_until([this] { return experiment_->totals().pairs_dropped > 10; }, 24 * 3600));
    EXPECT_EQ(experiment_->totals().rests, 0U);
    EXPECT_EQ(log_.count(Event::verdict), said);
    EXPECT_EQ(scope("kcryptd"), "smt");
    stuck_ = 0;
    costs("smt", 2);
    EXPECT_TRUE(run_until([this] { return experiment_->totals().regressed > 0; }, 24 * 3600));
}

TEST_F(ExperimentTest, PairsOfAllOfAClassAreOneComparison) {
    add_class();
    use_traffic({"kcryptd-254:0", "kcryptd-254:1"});
    start(smt_alone());
    std::set<std::vector<std::string>> attached;
    for (int i = 0; i < 4; i++) {
        run_slot();
        attached.insert(counters_.targets);
    }
    EXPECT_EQ(entry("kcryptd-#:#", "cache", "smt")->columns[0].worse.count, 4U) << "one of them in a slot";
    EXPECT_THAT(attached, testing::SizeIs(2)) << "in turn";
}

TEST_F(ExperimentTest, TheDefaultIsComparedLastAloneAndNotThroughCpu) {
    Policy policy = tune();
    policy.default_scope.manage = true;
    use_traffic({"kcryptd", std::string(kDefaultTarget)});
    noise_ = 0.05;
    start(policy);
    ASSERT_TRUE(
        run_until([&] { return asked() > 0 && files_->asked.back().starts_with("@default="); }, 7200));
    EXPECT_NE(view("kcryptd")->course, Course::dense);
    EXPECT_EQ(experiment_->totals().undecided, 2U) << "smt and cpu on kcryptd";
    files_->asked.clear();
    run_slot();
    EXPECT_THAT(files_->asked, testing::Not(Contains("@default=cpu")));
    EXPECT_THAT(files_->asked, testing::AllOf(testing::Not(testing::IsEmpty()),
                                              testing::Each(testing::StartsWith("@default="))));
    EXPECT_EQ(default_scope(), "cache");
    EXPECT_THAT(on_disk(), testing::IsEmpty());
}

TEST_F(ExperimentTest, ADefaultThatImprovedMovesItsFollowersButNotThoseWithAVerdict) {
    Policy policy = tune();
    policy.default_scope.manage = true;
    use_traffic({"kcryptd", std::string(kDefaultTarget)});
    cost_ = [](const std::string& name, const std::string& word) {
        if (name == "kcryptd") return word == "default" || word == "cache" ? 1.0 : 1.3;
        return word == "smt" ? 0.8 : 1.0;
    };
    start(policy);
    ASSERT_TRUE(run_until([this] { return default_scope() == "smt" && !experiment_->is_measuring(); }, 7200));
    run(30);
    EXPECT_EQ(target(kDefaultTarget).step.kind, Step::Kind::kept);
    EXPECT_EQ(scope("writeback"), "default (smt)");
    EXPECT_EQ(scope("kcryptd"), "cache") << "it regressed under smt: " << reason("kcryptd");
    use_traffic({"writeback"});
    ASSERT_TRUE(run_until([this] { return entry("writeback", "smt", "cpu") != nullptr; }, 7200));
    EXPECT_EQ(entry("writeback", "smt", "cpu")->key.reference_origin, "policy");
    parts_->engine.restore_all();
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(default_scope(), "cache");
}

TEST_F(ExperimentTest, WhatIsNotSampledIsCountedByTheSameNInBothWindows) {
    pace_ = [](const auto&, const auto&) { return 40'000.0; };
    ASSERT_TRUE(run_to_slot());
    EXPECT_THAT(counters_.asked, Contains("sample kcryptd 30"));  // 60,000 items in 1.5 s
}

TEST_F(ExperimentTest, ACandidateThatStarvesItsLoadIsCutShortCountsAgainstItselfAndRests) {
    start_alone();
    for (int i = 0; i < 5; i++) run_slot();
    pace_ = [](const auto&, const std::string& word) { return word == "smt" ? 600.0 : 10'000.0; };
    const std::uint64_t lost = experiment_->totals().windows_lost;
    run_slot();
    run_slot();
    EXPECT_EQ(experiment_->totals().windows_lost, lost + 2);
    EXPECT_EQ(experiment_->totals().rests, 1U);
    EXPECT_EQ(view("kcryptd")->course, Course::resting);
    EXPECT_EQ(entry("kcryptd", "cache", "smt")->judgement, Judgement::undecided) << "that is no verdict";
    const std::uint64_t pairs = experiment_->totals().pairs;
    run(3500);
    EXPECT_EQ(experiment_->totals().pairs, pairs);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    run(200);
    EXPECT_GT(experiment_->totals().pairs, pairs) << "an hour later it goes on";
}

TEST_F(ExperimentTest, ThreeTimesTheCostIsARest) {
    start_alone();
    for (int i = 0; i < 5; i++) run_slot();
    costs("smt", 4);
    run_slot();
    EXPECT_EQ(experiment_->totals().rests, 1U);
    EXPECT_THAT(view("kcryptd")->waits, testing::HasSubstr("more than three times the reference's"));
    EXPECT_EQ(
        std::ranges::count_if(
            log_.lines, [](const auto& l) { return l.text.find("is paused for 60 min") != l.text.npos; }),
        1);
}

TEST_F(ExperimentTest, TheBudgetOfADayIsNotOverspent) {
    Policy policy = smt_alone();
    policy.judge.budget = std::chrono::seconds(2);
    costs("smt", 1.5);
    policy.judge.settings.tolerance = 1;  // so the verdict is not `regressed`
    use_traffic({"kcryptd"});
    start(policy);
    ASSERT_TRUE(run_until([this] {
        return view("kcryptd") && view("kcryptd")->waits == "its judge.budget for today is used up";
    }));
    EXPECT_NEAR(view("kcryptd")->lost_seconds, 2.5, 0.6);  // ln 1.5 of 2.5 s a pair
    const std::uint64_t pairs = experiment_->totals().pairs;
    run(3600);
    EXPECT_EQ(experiment_->totals().pairs, pairs);
    run(86'400);
    EXPECT_GT(experiment_->totals().pairs, pairs) << "a day later";
}

TEST_F(ExperimentTest, DroppedPairsCostTimeToo) {
    Policy policy = smt_alone();
    policy.judge.budget = std::chrono::seconds(5);
    costs("smt", 1.5);
    counters_.count = [this](const std::string& target, unsigned slot) {
        WorkCount out = window(target, word_[target][slot]);
        out.lost = out.items;
        return out;
    };
    use_traffic({"kcryptd"});
    start(policy);
    run(3600);
    EXPECT_EQ(experiment_->totals().pairs, 0U);
    EXPECT_EQ(view("kcryptd")->waits, "its judge.budget for today is used up");
    EXPECT_NEAR(view("kcryptd")->lost_seconds, 5.5, 0.6);
}

// In mode tune there is often another candidate to try. The watch still gets its pairs.
TEST_F(ExperimentTest, TheWatchGoesOnWhileOtherCandidatesAreTried) {
    const auto cost = [this](double smt) {
        cost_ = [=](const auto&, const std::string& word) {
            return word == "smt" || word == "cpu" ? smt : 1.0;
        };
    };
    cost(0.8);
    noise_ = 0.03;
    use_traffic({"kcryptd"});
    ASSERT_TRUE(run_until(
        [this] { return state("kcryptd") == State::kept && experiment_->totals().undecided > 0; }, 7200));
    const auto watched = [this] {
        return entry("kcryptd", "cache", scope("kcryptd"))->columns[0].worse.count;
    };
    const std::uint64_t before = watched();
    run(6 * 3600);
    EXPECT_GT(watched(), before + 3);
    cost(1.4);
    EXPECT_TRUE(run_until([this] { return experiment_->totals().taken_back > 0; }, 48 * 3600));
}

// The watch of a clear gain gets fewer and fewer pairs: after the 16 pairs that tell its worth, recheck
// doubles, up to a day.
TEST_F(ExperimentTest, TheWatchOfAClearGainSlowsDown) {
    costs("smt", 0.7);
    start_alone();
    ASSERT_TRUE(run_to_verdict());
    const auto pairs_in = [this](double seconds) {
        const std::uint64_t before = experiment_->totals().pairs;
        run(seconds);
        return experiment_->totals().pairs - before;
    };
    EXPECT_GE(pairs_in(3 * 3600), 16U);
    EXPECT_LE(pairs_in(7200), 5U);
    tick_ = 300'000'000;
    (void)pairs_in(86'400);
    EXPECT_LE(pairs_in(86'400), 2U);
}

TEST_F(ExperimentTest, EveryFourthPairOfTheWatchIsLong) {
    costs("smt", 0.9);  // its interval is about -10%: recheck does not double
    noise_ = 0.03;
    start_alone();
    ASSERT_TRUE(run_to_verdict());
    std::vector<int> lengths;
    for (int i = 0; i < 8; i++) {
        ASSERT_TRUE(run_until([this] { return experiment_->is_measuring(); }, 100'000));
        const std::uint64_t began = now_;
        run_slot();
        lengths.push_back(static_cast<int>((now_ - began) / 1'000'000));
    }
    EXPECT_EQ(std::ranges::count(lengths, 5), 6);
    EXPECT_EQ(std::ranges::count(lengths, 61), 2);
}

TEST_F(ExperimentTest, AVerdictSaysWhatTheLockAndTheKworkersWere) {
    costs("smt", 0.8);
    counters_.count = [this](const std::string& target, unsigned slot) {
        const std::string& word = word_[target][slot];
        WorkCount out = window(target, word);
        out.lock = word == "smt" ? 40 : 340;
        out.workers = word == "smt" ? 31 : 9;
        out.pools = word == "smt" ? 12 : 2;
        return out;
    };
    start_alone();
    EXPECT_FALSE(view("kcryptd")->contention) << "no pair yet";
    ASSERT_TRUE(run_to_verdict());
    ASSERT_TRUE(last().contention);
    const auto& [cache, smt] = *last().contention;
    EXPECT_EQ(cache.lock_ns, 300) << "above the lowest";
    EXPECT_NEAR(*cache.lock_percent, 30, 2);
    EXPECT_EQ(smt.lock_ns, 0);
    EXPECT_EQ(cache.pools, 2U);
    EXPECT_EQ(smt.workers, 31U);
    EXPECT_THAT(log_.lines, Contains(testing::Field(&LogLine::text, testing::HasSubstr("; lock wait "))));
    const auto line = std::ranges::find(log_.lines, Event::verdict, &LogLine::event);
    ASSERT_NE(line, log_.lines.end());
    EXPECT_THAT(line->fields, Contains(std::pair<std::string, std::string>("WQ_WORKERS_CANDIDATE", "31")));
    EXPECT_THAT(line->fields, Contains(std::pair<std::string, std::string>("WQ_POOLS_REFERENCE", "2")));
}

TEST_F(ExperimentTest, LooksAtTheTrafficLessOftenWhileNothingIsBusy) {
    use_traffic({});
    start(tune());
    run(20);
    counters_.asked.clear();
    run(60);
    EXPECT_EQ(std::ranges::count(counters_.asked, "traffic"), 6);
}

// The one that was kept last, not that of the kernel whose version is the last text.
TEST_F(ExperimentTest, AnUpgradeOfTheKernelTriesTheOldIncumbentFirst) {
    std::string best = "smt";
    cost_ = [&best](const auto&, const std::string& word) { return word == best ? 0.8 : 1.3; };
    use_traffic({"kcryptd"});
    for (const auto& [release, scope_then] : {std::pair("6.9.0", "smt"), std::pair("6.12.0", "cpu")}) {
        kernel_.release = release;
        best = scope_then;
        parts_->engine.restore_all();
        start(tune());
        ASSERT_TRUE(run_until([&] { return scope("kcryptd") == best && state("kcryptd") == State::kept; }));
    }
    kernel_.release = "6.13.0";
    parts_->engine.restore_all();
    start(tune());
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "another kernel's verdict";
    EXPECT_EQ(view("kcryptd")->arms.candidate.name(), "cpu");
}

}  // namespace
}  // namespace wq
