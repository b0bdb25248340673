// SPDX-License-Identifier: LGPL-2.1-or-later
// The lesson from the verdicts on a class of workqueues.
#include "ctl/commands/lessons.h"
#include "verdict_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace wq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using enum Judgement;

constexpr std::int64_t kAskedAt = 1'000'000'000;
constexpr std::int64_t kHour = 3600;

class Lessons : public testing::Test {
  protected:
    VerdictRecord& verdict(const std::string& baseline, const std::string& candidate, Judgement outcome,
                           std::int64_t age, const std::string& target = "kcryptd-254:0-1") {
        VerdictRecord r;
        r.key = test::key_of(class_of(target), "6.12", "8 CPUs", baseline, candidate);
        r.target = target;
        r.time = kAskedAt - age;
        r.outcome = outcome;
        records_.push_back(r);
        return records_.back();
    }
    [[nodiscard]] std::vector<Lesson> all() const {
        return lessons_of({records_, "6.12", "8 CPUs", kAskedAt});
    }
    // The only lesson as text: "smt strict", "leave", or why there is none.
    [[nodiscard]] std::string lesson() const {
        const auto lessons = all();
        if (lessons.size() != 1) return std::to_string(lessons.size()) + " lessons";
        switch (lessons[0].kind) {
            case Lesson::Kind::use:
                return lessons[0].arm.name();
            case Lesson::Kind::leave:
                return "leave";
            case Lesson::Kind::nothing:
                break;
        }
        return lessons[0].why;
    }
    [[nodiscard]] std::vector<std::string> rests_on() const {
        const Lesson first = all().at(0);
        std::vector<std::string> out;
        for (const VerdictRecord& v : first.verdicts) out.push_back(v.key.reference + "/" + v.key.candidate);
        return out;
    }

    std::vector<VerdictRecord> records_;
};

TEST_F(Lessons, EachOutcome) {
    EXPECT_THAT(all(), IsEmpty());
    verdict("cache", "smt", improved, kHour);
    EXPECT_EQ(lesson(), "smt");
    records_[0].outcome = regressed;
    EXPECT_EQ(lesson(), "leave");
    records_[0].outcome = undecided;
    EXPECT_EQ(lesson(), "is undecided");
    EXPECT_THAT(rests_on(), ElementsAre("cache/smt"));
}

TEST_F(Lessons, AFollowerBeginsWhereDefaultIs) {
    VerdictRecord moved = verdict("cache", "smt", improved, kHour, "@default");
    verdict("smt", "cpu", regressed, kHour, "writeback");
    const auto kinds = [&] {
        std::vector<Lesson::Kind> out;
        for (const Lesson& lesson : all()) out.push_back(lesson.kind);
        return out;
    };
    using enum Lesson::Kind;
    EXPECT_THAT(kinds(), ElementsAre(use, leave)) << "others get smt by @default";
    records_[0].time = kAskedAt + kHour;
    EXPECT_THAT(kinds(), ElementsAre(nothing, nothing)) << "others stay at cache, which was not tried";
    EXPECT_EQ(all()[1].why, "depends on a scope that @default had and that this policy does not set");
    records_[0].time = moved.time;
    records_[0].outcome = undecided;
    EXPECT_THAT(kinds(), ElementsAre(nothing, nothing));
    records_[0].outcome = regressed;
    EXPECT_THAT(kinds(), ElementsAre(leave, leave)) << "smt was not ours";
    records_[1].key.reference = "cache";
    records_[0].outcome = undecided;
    EXPECT_THAT(kinds(), ElementsAre(nothing, leave));
}

// A rule is for a class on the CPUs of the last verdict; verdicts on other CPUs do not count.
TEST_F(Lessons, OnlyOnTheCpusOfTheLastVerdict) {
    verdict("cache", "smt", improved, 3 * kHour).cpus = "0-11";
    verdict("smt", "cpu", improved, 2 * kHour).cpus = "0-23";
    EXPECT_THAT(rests_on(), ElementsAre("smt/cpu"));
    verdict("cache", "numa", regressed, kHour).cpus = "0-11";
    EXPECT_THAT(rests_on(), ElementsAre("cache/smt"));
}

TEST_F(Lessons, OnlyWhatIsTrusted) {
    VerdictRecord& record = verdict("cache", "smt", improved, kAskedAt);
    EXPECT_EQ(lesson(), "smt") << "however old";
    record.time = kAskedAt + kHour;
    EXPECT_EQ(lesson(), "has a time in the future (wrong clock)");
    record.time = kAskedAt;
    EXPECT_EQ(lesson(), "smt");
    record.judged = false;
    EXPECT_THAT(all(), IsEmpty()) << "cut off";
}

TEST_F(Lessons, OnlyOfThisKernelAndTopology) {
    verdict("cache", "smt", improved, kHour).key.kernel = "6.13";
    verdict("cache", "smt", improved, kHour).key.topology = "9 CPUs";
    EXPECT_THAT(all(), IsEmpty());
}

TEST_F(Lessons, TheLastVerdictOnTheSameArmsCountsWhateverItWasJudgedBy) {
    verdict("cache", "smt", improved, 2 * kHour);
    verdict("cache", "smt", regressed, kHour, "kcryptd-254:12-3").key.counters = "latency+ 0";
    EXPECT_EQ(lesson(), "leave");
    EXPECT_EQ(all()[0].name, "kcryptd-254:12-3");
    verdict("cache", "smt", undecided, 1);
    EXPECT_EQ(lesson(), "is undecided");
}

TEST_F(Lessons, NamesEarlierVerdictsThatSayTheOpposite) {
    verdict("cache", "smt", improved, 4 * kHour).key.counters = "latency+ 0";
    verdict("cache", "smt", undecided, 3 * kHour);
    verdict("cache", "smt", improved, -kHour);  // made under a wrong clock
    verdict("cache", "system", improved, 2 * kHour, "writeback");
    EXPECT_THAT(all()[0].opposed, IsEmpty());
    verdict("cache", "smt", regressed, kHour);
    EXPECT_EQ(all()[0].kind, Lesson::Kind::leave);
    ASSERT_THAT(all()[0].opposed, SizeIs(1));
    EXPECT_EQ(all()[0].opposed[0].time, kAskedAt - 4 * kHour);
    EXPECT_THAT(all()[1].opposed, IsEmpty()) << "another class";
    verdict("cache", "smt", improved, 0);
    ASSERT_THAT(all()[0].opposed, SizeIs(1));
    EXPECT_EQ(all()[0].opposed[0].outcome, regressed);
    records_[4].cpus = "0-11";
    EXPECT_THAT(all()[0].opposed, IsEmpty()) << "on other CPUs";
}

TEST_F(Lessons, EachClassHasItsOwn) {
    verdict("cache", "smt", improved, kHour);
    verdict("cache", "system", regressed, kHour, "writeback");
    verdict("cache", "numa", improved, kHour, "@default");
    ASSERT_THAT(all(), SizeIs(3));
    EXPECT_EQ(all()[0].name, "@default");
    EXPECT_EQ(all()[0].arm.scope, Scope::numa);
    EXPECT_EQ(all()[2].kind, Lesson::Kind::leave);
}

TEST_F(Lessons, AStrictnessIsKept) {
    verdict("cache", "smt strict", improved, kHour);
    EXPECT_EQ(lesson(), "smt strict");
}

// The verdicts of a search in mode tune.
TEST_F(Lessons, OfModeTuneTheLastWinnerStands) {
    verdict("cache_shard", "cache", regressed, 4 * kHour);
    EXPECT_EQ(lesson(), "leave");
    verdict("cache_shard", "system", undecided, 3 * kHour);
    EXPECT_EQ(lesson(), "leave");
    verdict("cache_shard", "smt", improved, 2 * kHour);
    EXPECT_EQ(lesson(), "smt");
    verdict("smt", "cpu", regressed, kHour);
    EXPECT_EQ(lesson(), "smt") << "what lost against smt is no reason to leave what the kernel had";
    EXPECT_THAT(rests_on(), ElementsAre("cache_shard/smt"));
    records_.back().outcome = improved;
    EXPECT_EQ(lesson(), "cpu");
    EXPECT_THAT(rests_on(), ElementsAre("cache_shard/smt", "smt/cpu"));
}

TEST_F(Lessons, AnIncumbentThatIsTriedAgainFallsWithAllThatRestedOnIt) {
    verdict("cache", "smt", improved, 3 * kHour);
    verdict("smt", "cpu", improved, 2 * kHour);
    verdict("cache", "smt", regressed, kHour);
    EXPECT_EQ(lesson(), "leave");
}

TEST_F(Lessons, OfTwoThatImprovedTheLastCounts) {
    verdict("cache", "smt", improved, 2 * kHour);
    verdict("cache", "system", improved, kHour);
    EXPECT_EQ(lesson(), "system");
    verdict("smt", "cpu", regressed, 1);
    EXPECT_EQ(lesson(), "smt") << "the last trial had it for its incumbent";
    verdict("cache", "numa", regressed, 0);
    EXPECT_EQ(lesson(), "system");
}

TEST_F(Lessons, AStepByAWrongClockIsNotBuiltUpon) {
    verdict("cache", "smt", improved, -kHour);
    verdict("smt", "cpu", improved, kHour);
    EXPECT_EQ(lesson(), "depends on a verdict with a time in the future (wrong clock)");
    records_.back().outcome = regressed;
    EXPECT_EQ(lesson(), "depends on a verdict with a time in the future (wrong clock)")
        << "smt is not the kernel's, so leave would be wrong";
}

TEST_F(Lessons, NorIsSuchAStepTakenFromWhatTheKernelHad) {
    verdict("cache", "smt", improved, -kHour);
    verdict("cache", "numa", regressed, kHour);
    EXPECT_EQ(lesson(), "leave");
    EXPECT_THAT(rests_on(), ElementsAre("cache/numa"));
}

TEST_F(Lessons, ACircleSaysNothing) {
    verdict("cache", "system", improved, 2 * kHour);
    verdict("system", "cache", improved, kHour);
    EXPECT_EQ(lesson(), "contradicts an earlier one");
    records_.back().outcome = regressed;
    EXPECT_EQ(lesson(), "system") << "the same, the other way round";
}

TEST_F(Lessons, AnUndecidedComparisonElsewhereHidesNothing) {
    verdict("cache", "smt", improved, 2 * kHour);
    verdict("numa", "smt", undecided, kHour, "kcryptd-254:1-7");
    EXPECT_EQ(lesson(), "smt");
}

TEST_F(Lessons, ScopesOfAnotherVersion) {
    verdict("cache", "die", improved, kHour);
    EXPECT_EQ(lesson(), "has scopes that this version does not know");
    records_[0].outcome = regressed;
    EXPECT_EQ(lesson(), "leave");
}

TEST(ArmNamed, ReadsWhatNameWrites) {
    for (const Scope scope : kAllScopes)
        for (const auto& strict : {std::optional<bool>(), std::optional(true)}) {
            const Arm arm{scope, std::string(name_of(scope)), strict};
            EXPECT_EQ(arm_named(arm.name()), arm);
        }
    for (const char* name : {"", " strict", "default", "smt  strict", "smt Strict"})
        EXPECT_FALSE(arm_named(name)) << name;
}

}  // namespace
}  // namespace wq
