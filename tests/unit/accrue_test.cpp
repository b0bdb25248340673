// SPDX-License-Identifier: LGPL-2.1-or-later
// How pairs change an entry of the ledger.
#include "evidence/accrue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "evidence/verdicts.h"
#include "noise.h"
#include "targets/step.h"

namespace wq {
namespace {

const std::vector<ComparedCounter> kCounters = {
    {.name = "latency"}, {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true}};

LedgerEntry fresh(const std::vector<ComparedCounter>& counters = kCounters) {
    LedgerEntry out;
    out.columns = Comparison(counters).columns();
    return out;
}

// A pair in which ln(latency) of the candidate is D above that of the reference, with little noise.
PairEvidence pair(double d, Random& random, double noise = 0.01) {
    const auto value = [&](double level) { return std::exp(level + noise * random.normal()); };
    return {{PairValues{value(0), value(d)}, PairValues{value(0), value(0)}}, {}};
}

// Returns the number of pairs until TURN occurs; MOST + 1 if it does not occur within MOST pairs.
unsigned pairs_to(LedgerEntry& entry, Turn turn, double d, AccrualRule rule, Random& random,
                  unsigned most = 500) {
    for (unsigned i = 1; i <= most; i++)
        if (accrue(entry, pair(d, random), rule).turn == turn) return i;
    return most + 1;
}

TEST(Accrue, DecidesBothWays) {
    Random random(1);
    LedgerEntry better = fresh();
    EXPECT_EQ(pairs_to(better, Turn::improved, -0.1, {.now = 5}, random), 16U) << "there are to be 16 pairs";
    EXPECT_EQ(better.judgement, Judgement::improved);
    EXPECT_EQ(better.decided, 5);
    EXPECT_EQ(better.watch.size(), 2U);
    LedgerEntry worse = fresh();
    EXPECT_LE(pairs_to(worse, Turn::regressed, 0.1, {}, random), 12U);
    EXPECT_EQ(worse.judgement, Judgement::regressed);
}

TEST(Accrue, MaxPairsAreSaidOnceAlsoWhereALostWindowWasTheLastOfThem) {
    Random random(2);
    LedgerEntry entry = fresh();
    for (int i = 0; i < 63; i++) EXPECT_EQ(accrue(entry, pair(0, random, 0.1), {}).turn, Turn::none);
    add_lost_window(entry, Side::candidate);
    EXPECT_EQ(pairs_of(entry), 64U);
    EXPECT_EQ(accrue(entry, pair(0, random, 0.1), {}).turn, Turn::undecided);
    for (int i = 0; i < 136; i++) EXPECT_EQ(accrue(entry, pair(0, random, 0.1), {}).turn, Turn::none);
    EXPECT_EQ(entry.judgement, Judgement::undecided);
}

TEST(Accrue, ThePairsOfAnOrderAreWatchedWhereItImproved) {
    Random random(4);
    LedgerEntry entry = fresh();
    ASSERT_LE(pairs_to(entry, Turn::improved, -0.1, {}, random), 20U);
    EXPECT_LE(pairs_to(entry, Turn::taken_back, 0.1, {}, random), 60U);
    EXPECT_EQ(entry.judgement, Judgement::regressed);
}

// The retrial continues the same e-process and does not reset it, so an undecided retrial does not change the
// judgement.
TEST(Accrue, WhatRegressedStaysOutAfterAnUndecidedRetrial) {
    Random random(3);
    LedgerEntry entry = fresh();
    ASSERT_LE(pairs_to(entry, Turn::regressed, 0.4, {.now = 100}, random), 20U);
    for (unsigned i = 0; i < kRetryPairs; i++)
        EXPECT_EQ(accrue(entry, pair(0, random, 0.3), {.now = 1000}).turn, Turn::none);
    EXPECT_EQ(entry.judgement, Judgement::regressed);
    EXPECT_EQ(entry.decided, 1000) << "and rests again";
    EXPECT_EQ(course_of(&entry, Judging{}, 1001), Course::resting);
    EXPECT_LT(pairs_to(entry, Turn::improved, -0.5, {}, random), 300U) << "but it can come back";
}

TEST(Accrue, TheWatchTakesBackAndTheComparisonBeginsAnew) {
    Random random(4);
    LedgerEntry entry = fresh();
    ASSERT_LE(pairs_to(entry, Turn::improved, -0.1, {}, random), 20U);
    for (int i = 0; i < 200; i++)
        EXPECT_EQ(accrue(entry, pair(-0.05, random), {.watched = true}).turn, Turn::none);
    Accrual last;
    unsigned pairs = 0;
    for (; pairs < 200 && last.turn == Turn::none; pairs++)
        last = accrue(entry, pair(0.1, random), {.watched = true, .now = 77});
    EXPECT_EQ(last.turn, Turn::taken_back);
    EXPECT_LE(pairs, 40U);
    EXPECT_EQ(entry.judgement, Judgement::regressed);
    EXPECT_EQ(entry.alarms, 1U);
    EXPECT_EQ(entry.decided, 77);
    EXPECT_TRUE(entry.watch.empty());
    EXPECT_EQ(pairs_of(entry), 0U);
    EXPECT_GT(last.decision.pairs, 200U) << "told of what was cleared";
    EXPECT_GT(last.decision.log_worse, std::log(20'000)) << "that of the detector";
    EXPECT_NEAR(standing_of(last.decision, last.columns).effect.percent, 10, 4) << "since the change";
}

// Pairs tell what a scope is worth only while it is in force for another reason than they: after the verdict,
// or from the first one if it was set first. HELD: the candidate is in force; each phase is of so many pairs
// with this difference.
TEST(Accrue, ThePairsAfterTheVerdictAreSummedByThemselves) {
    struct Phase {
        unsigned pairs;
        double d;
        bool held;
        std::uint64_t after;  // pairs in `after` at its end
    };
    const struct {
        const char* what;
        std::vector<Phase> phases;
    } rows[] = {
        {"before a verdict there are none", {{15, -0.1, false, 0}}},
        {"the pairs that decide do not count, all later ones do", {{16, -0.1, false, 0}, {7, 0, true, 7}}},
        {"an order compares what improved", {{16, -0.1, false, 0}, {3, -0.1, false, 3}}},
        {"set first: from the first pair, over the verdict", {{10, -0.1, true, 10}, {30, -0.1, true, 40}}},
        {"set first, then evidence first: the verdict rests on them",
         {{10, -0.1, true, 10}, {5, -0.1, false, 10}, {1, -0.1, false, 0}, {1, -0.1, true, 1}}},
        {"what regressed while it was in force", {{5, 0.1, true, 5}, {15, 0.1, true, 0}}},
        {"an alarm begins anew", {{16, -0.1, false, 0}, {40, -0.1, true, 40}, {40, 0.5, true, 0}}},
    };
    for (const auto& [what, phases] : rows) {
        LedgerEntry entry = fresh();
        std::int64_t now = 0;
        for (const Phase& phase : phases) {
            for (unsigned i = 0; i < phase.pairs; i++) {
                const PairEvidence each{{PairValues{1, std::exp(phase.d)}, PairValues{1, 1}}, {}};
                const auto turn = accrue(entry, each, {.watched = phase.held, .now = ++now}).turn;
                if (turn == Turn::taken_back) break;  // it is not held any more
            }
            ASSERT_EQ(entry.after.empty() ? 0 : entry.after[0].pairs, phase.after) << what;
            if (phase.after == 0) continue;
            EXPECT_EQ(entry.after.size(), entry.columns.size());
            EXPECT_EQ(entry.after[1], AfterVerdict()) << "a guard";
            EXPECT_LE(entry.after[0].last - entry.after[0].first, now) << what;
            EXPECT_EQ(entry.after[0].last - entry.after[0].first + 1, static_cast<std::int64_t>(phase.after))
                << what;
        }
    }
}

TEST(Accrue, AfterTheVerdictOnlyWhatWasMeasuredCounts) {
    LedgerEntry entry = fresh();
    const PairEvidence each{{PairValues{1, std::exp(-0.1)}, PairValues{1, 1}}, {}};
    for (int i = 0; i < 18; i++) (void)accrue(entry, each, {.now = 10 + i});
    ASSERT_EQ(entry.after[0].pairs, 2U);
    (void)accrue(entry, {{}, Side::candidate}, {.watched = true, .now = 50});
    add_lost_window(entry, Side::candidate);
    EXPECT_EQ(entry.after[0].pairs, 2U) << "no lost window";
    EXPECT_NEAR(entry.after[0].sum, -0.2, 1e-9);
    EXPECT_NEAR(entry.after[0].squares, 0.02, 1e-9);
    EXPECT_EQ(entry.after[0].first, 26);
    EXPECT_EQ(entry.after[0].last, 27);
}

// A candidate that loses half of its windows never gains by the losses.
TEST(Accrue, HalfOfTheCandidatesWindowsLostNeverHelpIt) {
    for (std::uint64_t seed = 1; seed <= 50; seed++) {
        Random random(seed);
        LedgerEntry entry = fresh();
        for (unsigned i = 0; i < 64; i++) {
            const bool lost = random.coin();
            const double before = log_mean(entry.columns[0].better.logs);
            (void)accrue(entry, lost ? PairEvidence{{}, Side::candidate} : pair(-0.02, random, 0.03), {});
            if (lost) {
                EXPECT_LE(log_mean(entry.columns[0].better.logs), before);
            }
        }
        EXPECT_NE(entry.judgement, Judgement::improved);
    }
}

const std::vector<ComparedCounter> kOneColumn = {{.name = "latency"}};
const std::vector<ComparedCounter> kShippedColumns = {
    {.name = "latency"},
    {.name = "throughput", .higher_is_better = true, .tolerance = 0.01, .guard = true},
    {.name = "cpu", .tolerance = 0.05, .guard = true},
    {.name = "others", .tolerance = 0.02, .guard = true}};
const std::vector<ComparedCounter> kFourJudged = {
    {.name = "latency"}, {.name = "tail"}, {.name = "exec"}, {.name = "lock"}};

// Returns the number of pairs until TURN occurs, at most 100, if ln of the first counter is D higher in each
// pair and all others are the same in both arms. E and M are the mean of (2 / (1 + exp(-k)))^n then, whatever
// D: 24 and 45 after 6 and 7 pairs, 86 and 164 after 8 and 9, 17,612 and 34,634 after 16 and 17.
unsigned equal_pairs_to(LedgerEntry entry, Turn turn, double d, const AccrualRule& rule) {
    PairEvidence each{{entry.columns.size(), PairValues{1, 1}}, {}};
    each.values.front() = PairValues{1, std::exp(d)};
    unsigned pairs = 1;
    while (pairs < 100 && accrue(entry, each, rule).turn != turn) pairs++;
    return pairs;
}

TEST(Accrue, ARegressionTakesAsMuchMoreEvidenceAsThereAreColumns) {
    const auto pairs = [](const std::vector<ComparedCounter>& counters, unsigned alarms) {
        LedgerEntry entry = fresh(counters);
        entry.alarms = alarms;
        return equal_pairs_to(entry, Turn::regressed, 0.1, {});
    };
    EXPECT_EQ(pairs(kOneColumn, 0), 7U) << "40";
    EXPECT_EQ(pairs(kShippedColumns, 0), 9U) << "160";
    EXPECT_EQ(pairs(kFourJudged, 0), 9U);
    EXPECT_EQ(pairs(kOneColumn, 1), 8U) << "80";
    EXPECT_EQ(pairs(kShippedColumns, 1), 11U) << "320";
}

TEST(Accrue, AnImprovementTakesAsMuchMoreAsThereAreJudgedColumnsAndCandidates) {
    const auto pairs = [](const std::vector<ComparedCounter>& counters, unsigned candidates) {
        return equal_pairs_to(fresh(counters), Turn::improved, -0.1, {.candidates = candidates});
    };
    EXPECT_EQ(pairs(kOneColumn, 1), 16U) << "the least";
    EXPECT_EQ(pairs(kOneColumn, 1'000), 18U) << "40,000";
    EXPECT_EQ(pairs(kShippedColumns, 1'000), 18U) << "a guard cannot improve";
    EXPECT_EQ(pairs(kFourJudged, 1'000), 20U) << "160,000";
}

TEST(Accrue, AnAlarmOfTheWatchTakesTheRunLengthForEachColumn) {
    const auto pairs = [](const std::vector<ComparedCounter>& counters, std::uint64_t run_length) {
        LedgerEntry kept = fresh(counters);
        kept.judgement = Judgement::improved;
        return equal_pairs_to(kept, Turn::taken_back, 0.1, {.run_length = run_length, .watched = true});
    };
    EXPECT_EQ(pairs(kOneColumn, 20'000), 17U);
    EXPECT_EQ(pairs(kShippedColumns, 20'000), 19U) << "80,000";
    EXPECT_EQ(pairs(kFourJudged, 20'000), 19U);
    EXPECT_EQ(pairs(kOneColumn, 1'000), 12U);
    EXPECT_EQ(pairs(kShippedColumns, 1'000), 14U) << "4,000";
    EXPECT_EQ(AccrualRule().run_length, 20'000U);
}

}  // namespace
}  // namespace wq
