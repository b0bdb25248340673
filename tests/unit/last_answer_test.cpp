// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/last_answer.h"

#include <gtest/gtest.h>

namespace wq {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;

TEST(LastAnswer, ThereIsNoneBeforeTheFirstQuestion) {
    EXPECT_EQ(LastAnswer().at(0), nullptr);
}

// A script asks one question after another, each from a new process.
TEST(LastAnswer, WhoAsksNowAndThenIsNeverToldAnOldOne) {
    LastAnswer answer;
    for (std::uint64_t now = kSecond; now < 1000 * kSecond; now += 10'000) {
        ASSERT_EQ(answer.at(now), nullptr) << now;
        answer.keep("", now, 2'000);
    }
}

TEST(LastAnswer, WhatTookVeryLongIsSaidAgainForAWhile) {
    LastAnswer answer;
    answer.keep("very many targets", 10 * kSecond, kSecond);
    ASSERT_NE(answer.at(10 * kSecond), nullptr);
    EXPECT_EQ(*answer.at(12 * kSecond - 1), "very many targets");
    EXPECT_EQ(answer.at(12 * kSecond), nullptr);
}

// The bound holds for any number of callers and any cost of an answer.
TEST(LastAnswer, QuestionsThatNeverEndCostAQuarterOfACpu) {
    for (const std::uint64_t cost : {100U, 2'000U, 50'000U, 500'000U}) {
        LastAnswer answer;
        std::uint64_t spent = 0;
        std::uint64_t now = kSecond;
        for (; now < 61 * kSecond; now += 100) {
            if (answer.at(now) != nullptr) continue;
            now += cost;
            spent += cost;
            answer.keep("", now, cost);
        }
        EXPECT_LE(spent, 15 * kSecond + LastAnswer::kBurst + 2 * cost) << cost;
        EXPECT_GE(spent, 14 * kSecond) << cost << ": not by never looking again";
    }
}

// After a drop() the answer is computed again at once. The delay of later callers by that has a bound.
TEST(LastAnswer, TheDebtHasABound) {
    LastAnswer answer;
    for (int i = 0; i < 100; i++) answer.keep("", kSecond, kSecond);
    EXPECT_NE(answer.at(5 * kSecond - 1), nullptr);
    EXPECT_EQ(answer.at(5 * kSecond), nullptr);
}

TEST(LastAnswer, WhatIsTrueNoMoreIsNotSaid) {
    LastAnswer answer;
    answer.keep("applied", 0, kSecond);
    ASSERT_NE(answer.at(1), nullptr);
    answer.drop();
    EXPECT_EQ(answer.at(1), nullptr);
}

}  // namespace
}  // namespace wq
