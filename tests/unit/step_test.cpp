// SPDX-License-Identifier: LGPL-2.1-or-later
// What past verdicts make of a plan.
#include "tuner/step.h"

#include <gmock/gmock.h>

#include <cstdint>

#include "fake_machine.h"

namespace wq {
namespace {

using test::fixed;
using test::machine;
using test::rule_for_all;

// Two LLCs of 24 cores and two threads: cpu, smt, cache_shard, cache and system all make other pools.
class StepTest : public testing::Test {
  protected:
    explicit StepTest() { policy_.apply_unjudged = false; }

    void verdict(const std::string& baseline, const std::string& candidate, TrialOutcome outcome,
                 const std::string& reason = "", std::int64_t age = 0) {
        VerdictRecord r;
        r.key.baseline = baseline;
        r.key.candidate = candidate;
        r.outcome = outcome;
        r.reason = reason;
        r.time = kNow - age;
        records_[baseline + "/" + candidate] = r;
    }
    Step step() {
        const Workqueue target = test::unbound(topology_, Scope::cache_shard);
        plan_ = make_plan({topology_, kernel_, policy_, {target}, "", 8}).at(0);
        const auto latest = [this](const Arms& arms) -> const VerdictRecord* {
            asked_.push_back(arms.baseline.name() + "/" + arms.candidate.name());
            const auto found = records_.find(asked_.back());
            return found == records_.end() ? nullptr : &found->second;
        };
        asked_.clear();
        return next_step({plan_.target, plan_, policy_, 8, latest, kNow});
    }
    std::string trial() {
        const Step s = step();
        return s.trial ? s.trial->baseline.name() + "/" + s.trial->candidate.name() : "";
    }

    static constexpr std::int64_t kNow = 1'000'000;
    static constexpr std::int64_t kWeek = 7L * 24 * 3600;
    Topology topology_ = machine({.sockets = 2, .cores = 24, .threads = 2, .one_node = true});
    KernelInfo kernel_ = test::kernel_72();
    Policy policy_ = rule_for_all(fixed(Scope::cache));
    PlanLine plan_;
    std::map<std::string, VerdictRecord> records_;
    std::vector<std::string> asked_;
};

TEST_F(StepTest, GuardTriesThePlanAgainstTheBaseline) {
    EXPECT_EQ(trial(), "cache_shard/cache");
    EXPECT_EQ(step().kind, Step::Kind::waiting);
    EXPECT_FALSE(step().hold);
    EXPECT_EQ(step().trial->baseline.word, "default") << "bit for bit";
}

TEST_F(StepTest, EachOutcomeAndKeep) {
    const auto kind = [&](TrialOutcome outcome, Keep keep, const std::string& reason = "") {
        verdict("cache_shard", "cache", outcome, reason);
        policy_.keep = keep;
        return step().kind;
    };
    using enum TrialOutcome;
    EXPECT_EQ(kind(regressed, Keep::unless_regressed), Step::Kind::reverted);
    EXPECT_EQ(kind(improved, Keep::unless_regressed), Step::Kind::kept);
    EXPECT_EQ(kind(improved, Keep::if_improved), Step::Kind::kept);
    EXPECT_EQ(kind(inconclusive, Keep::unless_regressed, kMaxPairsReason), Step::Kind::kept);
    EXPECT_EQ(kind(inconclusive, Keep::if_improved, kMaxPairsReason), Step::Kind::reverted);
    EXPECT_EQ(kind(inconclusive, Keep::unless_regressed, kEmergencyReason), Step::Kind::reverted);
    EXPECT_EQ(trial(), "");
}

TEST_F(StepTest, AnOldVerdictHoldsUntilTheNextTrialEnds) {
    verdict("cache_shard", "cache", TrialOutcome::improved, "", kWeek - 1);
    EXPECT_EQ(trial(), "");
    verdict("cache_shard", "cache", TrialOutcome::improved, "", kWeek);
    EXPECT_EQ(trial(), "cache_shard/cache");
    EXPECT_EQ(step().kind, Step::Kind::kept);
    EXPECT_EQ(step().hold->word, "cache");
}

TEST_F(StepTest, AVerdictOfTheFutureIsOfAClockThatWasWrong) {
    verdict("cache_shard", "cache", TrialOutcome::improved, "", -400L * 24 * 3600);
    EXPECT_EQ(trial(), "cache_shard/cache");
}

TEST_F(StepTest, WhatMeasuredNothingIsNotKept) {
    for (const char* reason : {"work stays on old pools", "10 pairs running were dropped: x"}) {
        verdict("cache_shard", "cache", TrialOutcome::inconclusive, reason);
        EXPECT_EQ(step().kind, Step::Kind::reverted) << reason;
    }
}

TEST_F(StepTest, TuneTriesTheNearestSizeFirst) {
    policy_ = rule_for_all();
    policy_.mode = Mode::tune;
    // Pods of 24 cores are 1.6 octaves from 8, pods of one core (as cpu's and smt's) 3, 48 cores 2.6.
    EXPECT_EQ(trial(), "cache_shard/cache");
    verdict("cache_shard", "cache", TrialOutcome::regressed);
    EXPECT_EQ(trial(), "cache_shard/system");
    verdict("cache_shard", "system", TrialOutcome::inconclusive, "max_pairs");
    EXPECT_EQ(trial(), "cache_shard/smt");
    verdict("cache_shard", "smt", TrialOutcome::improved);
    EXPECT_EQ(step().hold->word, "smt");
    EXPECT_EQ(trial(), "smt/cpu") << "the winner is the next one's incumbent";
    verdict("smt", "cpu", TrialOutcome::regressed);
    EXPECT_EQ(trial(), "");
    EXPECT_EQ(step().kind, Step::Kind::kept);
    EXPECT_EQ(step().hold->word, "smt");
}

TEST_F(StepTest, TuneEndsAtTheBaselineWhereNothingBeatsIt) {
    policy_ = rule_for_all();
    policy_.mode = Mode::tune;
    for (const char* candidate : {"cache", "system", "smt", "cpu"})
        verdict("cache_shard", candidate, TrialOutcome::inconclusive, "max_pairs");
    EXPECT_EQ(step().kind, Step::Kind::reverted);
    EXPECT_FALSE(step().hold);
    EXPECT_EQ(trial(), "");
}

TEST_F(StepTest, ARuleThatNamesAScopeIsNotSearched) {
    policy_.mode = Mode::tune;
    EXPECT_EQ(trial(), "cache_shard/cache");
    verdict("cache_shard", "cache", TrialOutcome::regressed);
    EXPECT_EQ(trial(), "");
}

TEST_F(StepTest, StrictnessIsPartOfAnArm) {
    policy_.rules[0].strict = true;
    EXPECT_EQ(trial(), "cache_shard/cache strict");
    policy_ = rule_for_all(fixed(Scope::cache_shard), true);
    EXPECT_EQ(trial(), "cache_shard/cache_shard strict");
    EXPECT_EQ(step().trial->candidate.word, "default") << "only the strictness is to change";
}

TEST_F(StepTest, TuneTriesWhereOnlyTheStrictnessIsToChange) {
    policy_ = rule_for_all({}, true);
    policy_.mode = Mode::tune;
    EXPECT_EQ(trial(), "cache_shard/cache_shard strict");
    EXPECT_EQ(step().trial->candidate.word, "default");
    verdict("cache_shard", "cache_shard strict", TrialOutcome::improved);
    EXPECT_EQ(trial(), "cache_shard strict/cache strict");
}

}  // namespace
}  // namespace wq
