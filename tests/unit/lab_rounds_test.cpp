// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/rounds.h"

#include <gmock/gmock.h>

#include <random>

namespace wq::lab {
namespace {

Random random_from(unsigned seed) {
    return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
}

JudgeSettings pairs(unsigned most) {
    return {.max_pairs = most};
}

const ComparedCounter kTime{"time", false};

std::vector<Row> arms(std::size_t count) {
    return std::vector<Row>(count);
}

// A round with these values.
std::map<std::size_t, Figures> of(const std::map<std::size_t, double>& values) {
    std::map<std::size_t, Figures> out;
    for (const auto& [arm, value] : values) out[arm].value = value;
    return out;
}

TEST(RandomOrder, HasEachOrderAlike) {
    const Random random = random_from(1);
    std::map<std::vector<std::size_t>, unsigned> seen;
    for (unsigned i = 0; i < 6000; i++) seen[random_order(3, random)]++;
    EXPECT_EQ(seen.size(), 6U);
    for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Rounds, AnArmWithAVerdictIsRunNoMore) {
    Rounds c(arms(3), pairs(16), kTime, false);
    const Random random = random_from(2);
    while (c.rows()[1].result.verdict.empty()) {
        EXPECT_THAT(c.next(random), testing::UnorderedElementsAre(0, 1, 2));
        c.add(of({{0, 100.0}, {1, 120.0}, {2, c.count() % 2 == 0 ? 101.0 : 99.0}}));
    }
    EXPECT_EQ(c.rows()[1].result.verdict, "regressed");
    const unsigned decided = c.count();
    EXPECT_LT(decided, 10U);
    while (!c.next(random).empty()) {
        EXPECT_THAT(c.next(random), testing::UnorderedElementsAre(0, 2));
        c.add(of({{0, 100.0}, {2, c.count() % 2 == 0 ? 101.0 : 99.0}}));
    }
    EXPECT_EQ(c.count(), 16U);
    EXPECT_EQ(c.rows()[2].result.verdict, "undecided");
    EXPECT_EQ(c.pairs(1).size(), decided);
    EXPECT_EQ(c.rows()[0].runs.size(), 16U);
}

TEST(Rounds, EndsWithTheLastVerdict) {
    Rounds c(arms(2), pairs(16), kTime, false);
    while (!c.next(random_from(3)).empty()) c.add(of({{0, 100.0}, {1, 50.0}}));
    EXPECT_EQ(c.rows()[1].result.verdict, "improved");
    EXPECT_EQ(c.count(), c.rows()[1].result.pairs);
}

TEST(Rounds, AllPairsGoOnButTheVerdictStands) {
    Rounds c(arms(2), pairs(16), kTime, true);
    while (!c.next(random_from(3)).empty()) c.add(of({{0, 100.0}, {1, c.count() < 8 ? 50.0 : 400.0}}));
    EXPECT_EQ(c.count(), 16U);
    EXPECT_EQ(c.rows()[1].result.verdict, "improved");
    EXPECT_LT(c.rows()[1].result.pairs, 9U);
    EXPECT_NEAR(c.rows()[1].result.effect->percent, 41.42, 0.01)
        << "of all pairs: the middle of ln(1/2) and ln(4)";
}

TEST(Rounds, JudgesByOneOfAlphaWithoutALeastNumberOfPairs) {
    struct Case {
        double reference, candidate;
        unsigned most;
        double tolerance;
        bool higher;
        const char* verdict;
        std::uint64_t pairs;
        const char* reason;
    };
    for (const Case& t :
         {Case{100, 105, 16, 0, false, "regressed", 6, ""}, Case{1, 10, 16, 0, false, "regressed", 6, ""},
          Case{100, 95, 16, 0, false, "improved", 6, ""}, Case{100, 105, 6, 0, false, "regressed", 6, ""},
          Case{100, 105, 5, 0, false, "undecided", 5, "max_pairs"},
          Case{100, 104, 16, 0.05, false, "undecided", 16, "max_pairs"},
          Case{100, 106, 16, 0.05, false, "regressed", 6, ""},
          Case{100, 99, 16, 0.05, false, "improved", 6, ""},
          Case{100, 100, 16, 0, false, "undecided", 16, "max_pairs"},
          Case{100, 200, 16, 0, true, "improved", 6, ""}}) {
        SCOPED_TRACE(testing::Message() << t.candidate << " of " << t.reference << ", most " << t.most);
        Rounds c(arms(2), {.tolerance = t.tolerance, .max_pairs = t.most}, {"x", t.higher}, false);
        while (!c.next(random_from(4)).empty()) c.add(of({{0, t.reference}, {1, t.candidate}}));
        EXPECT_EQ(c.rows()[1].result.verdict, t.verdict);
        EXPECT_EQ(c.rows()[1].result.pairs, t.pairs);
        EXPECT_EQ(c.rows()[1].result.reason, t.reason);
        const double cost = t.higher ? t.reference / t.candidate : t.candidate / t.reference;
        EXPECT_NEAR(c.rows()[1].result.effect->percent, 100 * (cost - 1), 1e-9) << "of the cost";
        c.end("later");
        EXPECT_EQ(c.rows()[1].result.reason, t.reason) << "a verdict stays";
    }
}

TEST(Rounds, AHarmlessArmIsRarelyCalledAnythingAmongThree) {
    // The drift is strong (1% per run); the arms have no effect.
    unsigned wrong = 0;
    constexpr unsigned kTrials = 400;
    for (unsigned seed = 0; seed < kTrials; seed++) {
        Rounds c(arms(3), pairs(16), kTime, false);
        const Random random = random_from(seed);
        std::mt19937 noise(seed);
        double level = 100;
        for (auto order = c.next(random); !order.empty(); order = c.next(random)) {
            std::map<std::size_t, double> values;
            for (const std::size_t arm : order)
                values[arm] = level *= 1.01 * std::lognormal_distribution<double>(0, 0.03)(noise);
            c.add(of(values));
        }
        for (const std::size_t arm : {1U, 2U}) wrong += c.rows()[arm].result.verdict != "undecided";
    }
    // The bound is alpha for worse and alpha for better, for each of two arms. The real share is far below.
    EXPECT_LT(wrong, 2 * kTrials / 10);
}

TEST(SummaryOf, EmptyOneAndMany) {
    EXPECT_EQ(summary_of({}).median, 0);
    const Summary s = summary_of({4, 1, 2, 5});
    EXPECT_EQ(s.median, 3);
    EXPECT_EQ(s.min, 1);
    EXPECT_EQ(s.max, 5);
    EXPECT_EQ(summary_of({9, 1, 2}).median, 2);
}

class RunRounds : public testing::Test {
  protected:
    Status did(const std::string& what) {
        did_.push_back(what);
        return {};
    }
    Status run(unsigned warm_ups = 0) { return run_rounds(rounds_, warm_ups, edges_); }

    Rounds rounds_{arms(2), pairs(4), kTime, false};
    std::vector<std::string> did_;
    Status checked_;
    Conditions conditions_{0, "0-3"};
    Edges edges_{.begin = [this] { return did("begin"); },
                 .switch_to = [this](std::size_t arm) { return did("write " + std::to_string(arm)); },
                 .measure =
                     [this](std::size_t arm) {
                         (void)did("run " + std::to_string(arm));
                         return Result<Figures>(Figures{1});
                     },
                 .check = [this] { return checked_; },
                 .conditions = [this] { return conditions_; },
                 .random = random_from(6),
                 .progress = [](const std::string&) {}};
};

TEST_F(RunRounds, EveryRunBeginsWithAWrite) {
    ASSERT_TRUE(run(2));
    ASSERT_EQ(did_.size(), 20U);
    EXPECT_THAT(std::vector(did_.begin(), did_.begin() + 4),
                testing::ElementsAre("begin", "write 0", "run 0", "run 0"));
    for (std::size_t i = 4; i < did_.size(); i += 2) {
        EXPECT_THAT(did_[i], testing::HasSubstr("write "));
        EXPECT_EQ(did_[i + 1].back(), did_[i].back());
    }
    EXPECT_EQ(rounds_.rows()[1].runs.size(), 4U) << "without warm-ups";
    checked_ = fail("an external writer");
    EXPECT_FALSE(run()) << "it looks once more";
    rounds_ = Rounds(arms(2), pairs(4), kTime, false);
    EXPECT_FALSE(run());
    EXPECT_EQ(rounds_.count(), 0U) << "the round does not count";
}

TEST_F(RunRounds, ARoundUnderAnotherMachineIsDropped) {
    unsigned runs = 0;
    edges_.measure = [&](std::size_t) {
        runs++;
        if (runs == 2) conditions_.cpus = "0-2";
        if (runs == 6) conditions_.suspended = 1'000'000'000;
        return Result<Figures>(Figures{1});
    };
    ASSERT_TRUE(run());
    EXPECT_EQ(runs, 12U);
    EXPECT_EQ(rounds_.count(), 4U);
    EXPECT_THAT(rounds_.dropped(), testing::ElementsAre(testing::Pair("CPUs came or went", 1U),
                                                        testing::Pair("the machine was suspended", 1U)));
    EXPECT_EQ(rounds_.rows()[0].runs.size(), 4U);
}

TEST_F(RunRounds, AMachineThatNeverRestsEndsIt) {
    edges_.measure = [&](std::size_t) {
        conditions_.cpus += "+";
        return Result<Figures>(Figures{1});
    };
    const auto done = run();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, testing::HasSubstr("10 rounds in a row were dropped"));
    EXPECT_EQ(did_.size(), 21U) << "begin and the writes";
    EXPECT_EQ(rounds_.count(), 0U);
}

TEST_F(RunRounds, AnErrorKeepsWhatWasMeasured) {
    edges_.measure = [&](std::size_t) {
        did_.emplace_back("run");
        if (did_.size() >= 9) return Result<Figures>(fail("exit code 3"));
        return Result<Figures>(Figures{2});
    };
    const auto done = run();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().text, "exit code 3");
    EXPECT_EQ(rounds_.count(), 1U);
    EXPECT_EQ(rounds_.rows()[1].result.verdict, "");
    rounds_.end("cut off");
    EXPECT_EQ(rounds_.rows()[1].result.reason, "cut off");
}

}  // namespace
}  // namespace wq::lab
