// SPDX-License-Identifier: LGPL-2.1-or-later
// Which candidates follow from a plan and the ledger.
#include "targets/step.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>

#include "fake_machine.h"

namespace wq {
namespace {

using test::fixed;
using test::rule_for_all;

constexpr std::int64_t kNow = 1'000'000'000;
constexpr std::int64_t kMonth = 30L * 24 * 3600;

// Two LLCs of 24 cores with two threads: cpu, smt, cache_shard, cache and system all make different pools.
class CandidatesTest : public testing::Test {
  protected:
    void known(const std::string& reference, const std::string& candidate, Judgement judgement,
               std::uint64_t pairs = 20, std::int64_t age = 0) {
        LedgerEntry entry;
        entry.columns = Comparison(std::vector<ComparedCounter>{{.name = "latency"}}).columns();
        entry.columns[0].worse.count = pairs;
        entry.key.reference = reference;
        entry.key.candidate = candidate;
        entry.judgement = judgement;
        entry.decided = entry.updated = kNow - age;
        entries_[reference + "/" + candidate] = entry;
    }
    Step step() {
        Workqueue target = test::unbound(topology_, was_);
        plan_ = make_plan({topology_, kernel_, policy_, {target}, "", 8}).at(0);
        if (default_holds_) plan_.now = default_holds_;
        const auto key = [](const Arms& arms, bool from_policy) {
            LedgerKey out;
            out.reference = arms.reference.name();
            out.candidate = arms.candidate.name();
            out.reference_origin = from_policy ? "policy" : "kernel";
            return out;
        };
        const auto entry = [this](const LedgerKey& k) -> const LedgerEntry* {
            const auto found = entries_.find(k.reference + "/" + k.candidate);
            return found == entries_.end() ? nullptr : &found->second;
        };
        const Rest resting{0, "it rests", suspect_};
        const auto rests = [&](const Arms& arms) {
            return resting_ == arms.reference.name() + "/" + arms.candidate.name() ? &resting : nullptr;
        };
        const auto refuses = [this](const std::string& word) { return word == refused_; };
        return next_step(
            {plan_.target, plan_, policy_, 8, key, entry, {}, rests, refuses, before_upgrade_, spent_, kNow});
    }
    static std::string text_of(const std::optional<Arms>& arms) {
        return arms ? arms->reference.name() + "/" + arms->candidate.name() : "";
    }
    std::string next() {
        const Step s = step();
        return s.next ? text_of(s.next) + " " + std::string(name_of(s.course)) : "";
    }
    void tune() { policy_ = rule_for_all({}); }

    Topology topology_ = test::machine({.sockets = 2, .cores = 24, .threads = 2, .one_node = true});
    KernelInfo kernel_ = test::kernel_72();
    Policy policy_ = rule_for_all({.candidates = {Scope::cache}});
    Scope was_ = Scope::cache_shard;
    std::optional<Scope> default_holds_;
    PlanLine plan_;
    std::map<std::string, LedgerEntry> entries_;
    std::string resting_;
    std::string refused_;
    std::string before_upgrade_;
    bool spent_ = false;
    bool suspect_ = true;
};

using enum Judgement;

TEST_F(CandidatesTest, ARuleListsTheCandidates) {
    EXPECT_EQ(next(), "cache_shard/cache dense");
    EXPECT_EQ(step().kind, Step::Kind::waiting);
    EXPECT_FALSE(step().hold);
    EXPECT_EQ(step().next->reference.word(), "default") << "bit for bit";
    EXPECT_EQ(step().candidates, 1U);
}

TEST_F(CandidatesTest, AnImprovementIsHeldAndWatched) {
    known("cache_shard", "cache", improved);
    EXPECT_EQ(step().kind, Step::Kind::kept);
    EXPECT_EQ(step().hold->word(), "cache");
    EXPECT_EQ(text_of(step().watch), "cache_shard/cache");
    EXPECT_FALSE(step().next);
    EXPECT_THAT(step().said, testing::HasSubstr("cache against cache_shard: improved"));
}

TEST_F(CandidatesTest, WhatRegressedRestsAndThenGoesOnWithWhatIsKnown) {
    known("cache_shard", "cache", regressed);
    EXPECT_EQ(step().kind, Step::Kind::reverted);
    EXPECT_EQ(next(), "cache_shard/cache resting");
    known("cache_shard", "cache", regressed, 20, kMonth);
    EXPECT_EQ(next(), "cache_shard/cache sparse");
    EXPECT_EQ(step().kind, Step::Kind::reverted) << "and stays out meanwhile";
    EXPECT_FALSE(step().hold);
}

TEST_F(CandidatesTest, MaxPairsMakeASparseOne) {
    known("cache_shard", "cache", undecided, 63);
    EXPECT_EQ(next(), "cache_shard/cache dense");
    known("cache_shard", "cache", undecided, 64);
    EXPECT_EQ(next(), "cache_shard/cache sparse");
    EXPECT_FALSE(step().hold);
}

TEST_F(CandidatesTest, WhatWasSetAsideIsNotKeptEither) {
    known("cache_shard", "cache", undecided, 64);
    resting_ = "cache_shard/cache";
    EXPECT_FALSE(step().hold);
    EXPECT_EQ(next(), "cache_shard/cache resting");
}

// The plan is cache_shard, which is in place: the finer scopes are tried, the nearest size first. Pods of smt
// and cpu lie within one core; smt is the coarser one.
TEST_F(CandidatesTest, TuneTriesWhatIsFinerAndTheWinnerIsTheNextReference) {
    tune();
    EXPECT_EQ(next(), "cache_shard/smt dense");
    EXPECT_EQ(step().candidates, 2U);
    known("cache_shard", "smt", improved);
    EXPECT_EQ(step().hold->word(), "smt");
    EXPECT_EQ(next(), "smt/cpu dense");
    EXPECT_EQ(text_of(step().watch), "cache_shard/smt");
    known("smt", "cpu", improved);
    EXPECT_EQ(step().hold->word(), "cpu");
    EXPECT_EQ(text_of(step().watch), "cache_shard/cpu") << "against the baseline";
    EXPECT_EQ(next(), "");
}

TEST_F(CandidatesTest, WhatTheKernelRefusedEndsNoSearch) {
    tune();
    refused_ = "smt";
    EXPECT_EQ(next(), "cache_shard/cpu dense");
    known("cache_shard", "smt", improved);
    EXPECT_FALSE(step().hold) << "it cannot be written here";
    policy_ = rule_for_all(fixed(Scope::smt));
    EXPECT_EQ(step().hold->word(), "smt") << "the rule sets it; the engine reports the refusal";
}

TEST_F(CandidatesTest, TuneKeepsOnlyWhatImproved) {
    tune();
    known("cache_shard", "smt", undecided, 64);
    EXPECT_FALSE(step().hold);
    EXPECT_EQ(next(), "cache_shard/cpu dense") << "the next one, while the first is sparse";
    known("cache_shard", "cpu", undecided, 64);
    entries_["cache_shard/smt"].updated = kNow - 10;
    EXPECT_EQ(next(), "cache_shard/smt sparse") << "who has waited longest";
    entries_["cache_shard/smt"].updated = kNow + 1;
    EXPECT_EQ(next(), "cache_shard/cpu sparse");
    EXPECT_EQ(step().kind, Step::Kind::reverted);
}

TEST_F(CandidatesTest, ACoarserOneIsTriedOnlyWhereItIsThePlan) {
    tune();
    was_ = Scope::smt;  // the plan is cache_shard, which is coarser; cache and system are no candidates
    EXPECT_EQ(next(), "smt/cache_shard dense");
    known("smt", "cache_shard", regressed);
    EXPECT_EQ(next(), "smt/cpu dense");
    EXPECT_EQ(step().candidates, 2U);
    known("smt", "cache_shard", improved);
    EXPECT_EQ(next(), "cache_shard/cpu dense") << "what the reference has beaten does not come back";
}

TEST_F(CandidatesTest, WhatLostToTheFormerReferenceIsNotTriedAgain) {
    tune();
    known("cache_shard", "cpu", regressed);
    known("cache_shard", "smt", improved);
    EXPECT_EQ(step().hold->word(), "smt");
    EXPECT_EQ(next(), "");
}

TEST_F(CandidatesTest, TheWatchTakesBackTheLastStepAlone) {
    tune();
    known("cache_shard", "smt", improved);
    known("smt", "cpu", improved);
    known("cache_shard", "cpu", regressed);
    EXPECT_EQ(step().hold->word(), "smt");
    EXPECT_EQ(text_of(step().watch), "cache_shard/smt");
    EXPECT_EQ(next(), "");
}

TEST_F(CandidatesTest, WhatAnOlderKernelKeptIsFirst) {
    tune();
    before_upgrade_ = "cpu";
    EXPECT_EQ(next(), "cache_shard/cpu dense");
}

// What a rule names is in force while it is compared, until it regressed; with `hold` even then.
TEST_F(CandidatesTest, WhatIsSetFirst) {
    const auto shown = [this](const std::string& next_text) {
        const Step s = step();
        EXPECT_EQ(next(), next_text);
        return fmt::format("{} {}", static_cast<int>(s.kind), s.hold ? s.hold->word() : "baseline");
    };
    const auto in = [](Step::Kind kind, const char* word) {
        return fmt::format("{} {}", static_cast<int>(kind), word);
    };
    using enum Step::Kind;
    policy_ = rule_for_all(fixed(Scope::cache));
    EXPECT_EQ(shown("cache_shard/cache dense"), in(set, "cache"));
    EXPECT_TRUE(step().holds(*step().hold));
    known("cache_shard", "cache", undecided, 64);
    EXPECT_EQ(shown("cache_shard/cache sparse"), in(set, "cache"));
    spent_ = true;
    EXPECT_EQ(shown("cache_shard/cache sparse"), in(set, "cache")) << "it does not look worse";
    entries_["cache_shard/cache"].columns[0].worse.logs.fill(1);
    EXPECT_EQ(shown("cache_shard/cache sparse"), in(reverted, "baseline")) << "until the next day";
    spent_ = false;
    resting_ = "cache_shard/cache";
    EXPECT_EQ(shown("cache_shard/cache resting"), in(reverted, "baseline"));
    suspect_ = false;
    EXPECT_EQ(shown("cache_shard/cache resting"), in(set, "cache")) << "its pairs were dropped";
    resting_.clear();
    known("cache_shard", "cache", regressed);
    EXPECT_EQ(shown("cache_shard/cache resting"), in(reverted, "baseline"));
    known("cache_shard", "cache", regressed, 20, kMonth);
    EXPECT_EQ(shown("cache_shard/cache sparse"), in(reverted, "baseline")) << "set only when it improved";
    policy_.rules[0].wish.hold = true;
    EXPECT_EQ(shown(""), in(set, "cache"));
    policy_.rules[0].wish.hold = false;
    known("cache_shard", "cache", improved);
    EXPECT_EQ(shown(""), in(kept, "cache"));
    EXPECT_EQ(text_of(step().watch), "cache_shard/cache");
    was_ = Scope::smt;
    policy_ = rule_for_all();
    EXPECT_EQ(shown("smt/cache_shard dense"), in(set, "cache_shard")) << "the plan";
}

TEST_F(CandidatesTest, StrictnessIsPartOfAnArm) {
    policy_ = rule_for_all(fixed(Scope::cache), true);
    EXPECT_EQ(next(), "cache_shard/cache strict dense");
    policy_ = rule_for_all(fixed(Scope::cache_shard), true);
    EXPECT_EQ(next(), "cache_shard/cache_shard strict dense");
    EXPECT_EQ(step().next->candidate.word(), "default") << "only the strictness is to change";
}

TEST_F(CandidatesTest, TuneTriesWhereOnlyTheStrictnessIsToChange) {
    policy_ = rule_for_all({}, true);
    EXPECT_EQ(next(), "cache_shard/cache_shard strict dense");
    known("cache_shard", "cache_shard strict", improved);
    EXPECT_EQ(next(), "cache_shard strict/smt strict dense");
}

// The class regressed under smt, and we moved @default to smt. The follower keeps its former scope.
TEST_F(CandidatesTest, ADefaultThatMovedDoesNotMoveWhatRegressedThere) {
    tune();
    default_holds_ = Scope::smt;
    EXPECT_EQ(next(), "smt/cache_shard dense") << "no verdict yet: the current scope is the reference";
    known("cache_shard", "smt", regressed);
    ASSERT_TRUE(step().hold);
    EXPECT_EQ(step().hold->word(), "cache_shard");
    EXPECT_EQ(step().kind, Step::Kind::reverted);
}

}  // namespace
}  // namespace wq
