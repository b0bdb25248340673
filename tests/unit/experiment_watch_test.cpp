// SPDX-License-Identifier: LGPL-2.1-or-later
// The slots of the watch: when they come, and who takes part.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fake_experiment.h"

namespace wq {
namespace {

using test::fixed;
using test::rule_for_all;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ExperimentWatch : public test::ExperimentRig {
  protected:
    // kcryptd costs FACTOR under smt; nothing else has an effect.
    void kcryptd_costs(double factor) {
        cost_ = [=](const std::string& name, const std::string& word) {
            return name == "kcryptd" && word == "smt" ? factor : 1.0;
        };
    }
    // Runs until kcryptd is kept, with a gain that is too small for a longer recheck.
    void keep_kcryptd(const Policy& policy) {
        kcryptd_costs(0.95);
        start(policy);
        ASSERT_TRUE(run_until([this] { return experiment_->totals().improved > 0; }, 7200));
        ASSERT_EQ(view("kcryptd")->course, Course::watched);
    }
    [[nodiscard]] const LedgerEntry& kept() const { return *entry("kcryptd", "cache", "smt"); }
    [[nodiscard]] std::uint64_t kept_pairs() const { return kept().columns[0].worse.count; }
    // Seconds until the next pair of kcryptd has ended.
    double next_pair() {
        const std::uint64_t from = now_;
        const std::uint64_t pairs = kept_pairs();
        EXPECT_TRUE(run_until([&] { return kept_pairs() != pairs; }, 7200));
        return static_cast<double>(now_ - from) / 1e6;
    }
};

// A pair per recheck while M is at most 10. Above that, one in each slot, until the doubt or the scope is
// gone.
TEST_F(ExperimentWatch, InDoubtThereIsAPairInEverySlot) {
    use_traffic({"kcryptd"});
    keep_kcryptd(smt_alone());
    (void)next_pair();
    for (int i = 0; i < 12; i++) EXPECT_NEAR(next_pair(), 600, 75);
    kcryptd_costs(1.05);
    unsigned sparse = 0;
    unsigned dense = 0;
    double in_doubt = 0;
    for (; dense + sparse < 100 && experiment_->totals().taken_back == 0;) {
        const bool doubts = watch_log(kept()) > std::log(10);
        const double passed = next_pair();
        (doubts ? dense : sparse)++;
        if (doubts) {
            EXPECT_LT(passed, 75) << "a long pair takes 61 s";
            in_doubt += passed;
        } else {
            EXPECT_NEAR(passed, 600, 75);
        }
    }
    EXPECT_EQ(experiment_->totals().taken_back, 1U);
    EXPECT_GE(sparse, 5U);
    EXPECT_GE(dense, 8U);
    EXPECT_LT(in_doubt, 600);
}

TEST_F(ExperimentWatch, DoubtThatPassesEndsThePairsInEverySlot) {
    use_traffic({"kcryptd"});
    keep_kcryptd(smt_alone());
    kcryptd_costs(1.05);
    ASSERT_TRUE(run_until([this] { return watch_log(kept()) > std::log(10); }, 86'400));
    kcryptd_costs(0.95);
    ASSERT_TRUE(run_until([this] { return watch_log(kept()) <= std::log(10); }, 600));
    (void)next_pair();
    EXPECT_NEAR(next_pair(), 600, 75);
    EXPECT_EQ(experiment_->totals().taken_back, 0U);
}

// writeback is compared all the time. In the slots of the watch it keeps its scope and is not counted.
TEST_F(ExperimentWatch, AWatchedTargetIsAloneInItsSlot) {
    Policy policy = smt_alone();
    policy.judge.settings.max_pairs = 100'000;
    keep_kcryptd(policy);
    unsigned watched = 0;
    unsigned others = 0;
    for (int i = 0; i < 2'000 && watched < 4; i++) {
        ASSERT_TRUE(run_to_slot());
        counters_.asked.clear();
        files_->asked.clear();
        const std::uint64_t before = kept_pairs();
        run_slot();
        std::vector<std::string> begun;
        std::ranges::copy_if(counters_.asked, std::back_inserter(begun),
                             [](const std::string& one) { return one.starts_with("begin "); });
        if (kept_pairs() == before) {
            EXPECT_THAT(begun, ElementsAre("begin writeback 0", "begin writeback 1"));
            others++;
            continue;
        }
        watched++;
        EXPECT_THAT(begun, ElementsAre("begin kcryptd 0", "begin kcryptd 1"));
        EXPECT_THAT(files_->asked, AllOf(Not(IsEmpty()), Each(StartsWith("kcryptd="))));
    }
    EXPECT_EQ(watched, 4U);
    EXPECT_GT(others, 100U);
    EXPECT_EQ(view("writeback")->course, Course::dense);
}

// Where nothing else is measured, nothing else is attached either.
TEST_F(ExperimentWatch, TheCountersAreAttachedToTheWatchedTargetAlone) {
    keep_kcryptd(smt_alone());
    ASSERT_TRUE(run_until([this] { return view("writeback")->course == Course::sparse; }, 3600));
    for (int i = 0; i < 3; i++) {
        (void)next_pair();
        EXPECT_THAT(counters_.targets, ElementsAre("kcryptd"));
    }
}

// A rule that names a scope: it is in force from the start, compared all along, and taken back if it
// regresses.
TEST_F(ExperimentWatch, WhatIsSetFirstIsTakenBackWhenItRegresses) {
    costs("smt", 1.3);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    engine_->reconcile();
    EXPECT_EQ(scope("kcryptd"), "smt") << "before the first pair";
    run_slot();
    EXPECT_EQ(scope("kcryptd"), "smt") << "after a slot, too";
    EXPECT_FALSE(entry("kcryptd", "cache", "smt")->watch.empty())
        << "the detector is beside it from the first pair";
    ASSERT_TRUE(run_until([this] { return experiment_->totals().taken_back > 0; }, 600));
    EXPECT_EQ(entry("kcryptd", "cache", "smt")->judgement, Judgement::regressed);
    run(10);
    EXPECT_EQ(scope("kcryptd"), "default (cache)");
    EXPECT_EQ(state("kcryptd"), State::reverted);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    run(60);
    EXPECT_EQ(scope("kcryptd"), "default (cache)") << "the ledger's `regressed` beats the rule";
    ScopeWish held = fixed(Scope::smt);
    held.hold = true;
    use(at_once(rule_for_all(held)));
    const auto pairs = experiment_->totals().pairs;
    run(60);
    EXPECT_EQ(scope("kcryptd"), "smt");
    EXPECT_EQ(experiment_->totals().pairs, pairs);
}

TEST_F(ExperimentWatch, WhatIsSetFirstAndImprovesIsKept) {
    costs("smt", 0.9);
    start(at_once(rule_for_all(fixed(Scope::smt))));
    ASSERT_TRUE(run_until([this] { return experiment_->totals().improved > 0; }, 900));
    run(10);
    EXPECT_EQ(state("kcryptd"), State::kept);
    EXPECT_EQ(scope("kcryptd"), "smt");
}

// A second of budget is a second of work that is lost, so what costs 60 times as much is decided on the first
// day.
TEST_F(ExperimentWatch, WhatIsFarWorseIsDecidedWithinTheBudget) {
    costs("smt", 60);
    start(smt_alone());
    ASSERT_TRUE(run_until([this] { return experiment_->totals().regressed > 0; }, 5 * 3600));
    EXPECT_LE(entry("kcryptd", "cache", "smt")->columns[0].worse.count, 9U);
    EXPECT_LT(experiment_->totals().lost_today, 60);
}

}  // namespace
}  // namespace wq
