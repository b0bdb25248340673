// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/load_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::File;
using test::load_texts;
using test::TempTree;
using testing::ElementsAre;

std::vector<std::string> matches(const Policy& policy) {
    std::vector<std::string> out;
    for (const WorkqueueRule& rule : policy.rules) out.push_back(rule.match.at(0));
    return out;
}

TEST(Policy, ARuleThatHasExpiredMatchesNothing) {
    constexpr std::int64_t kNoon = 1'800'014'400;  // 2027-01-15 12:00 UTC
    auto policy =
        load_texts({"[[workqueue]]\nmatch = \"kcryptd-*\"\nscope = \"smt\"\nexpires = \"2027-01-15\"\n"
                    "evidence = \"fleet, fdr 5%\"\n[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->rules[0].evidence, "fleet, fdr 5%");
    EXPECT_FALSE(policy->is_outdated(kNoon)) << "the last day";
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "smt");
    EXPECT_TRUE(policy->is_outdated(kNoon + 12 * 3600)) << "midnight in UTC";
    policy->expire(kNoon + 12 * 3600);
    EXPECT_FALSE(policy->is_outdated(kNoon + 12 * 3600));
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "leave") << "the next rule decides";
    ASSERT_EQ(policy->expired_rules().size(), 1U);
    EXPECT_EQ(policy->expired_rules()[0].line, 1U);
    policy->expire(kNoon);
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "smt") << "the clock was wrong";
}

// After its last day the keys of a [default_scope] table do not apply, and earlier sources decide.
TEST(Policy, ADefaultScopeThatHasExpiredGivesWayToTheEarlierOnes) {
    constexpr std::int64_t kNoon = 1'800'014'400;  // 2027-01-15 12:00 UTC
    auto policy = load_texts({"[default_scope]\nscope = \"auto\"\ncandidates = [\"smt\", \"cpu\"]\n",
                              "[default_scope]\nmanage = false\nexpires = 2027-01-16\n",
                              "[default_scope]\nscope = \"numa\"\nhold = true\nevidence = \"fleet\"\n"
                              "expires = 2027-01-15\n"});
    ASSERT_TRUE(policy);
    const auto text = [&](int days) {
        policy->expire(kNoon + days * 24 * 3600);
        const auto& now = policy->default_scope;
        return fmt::format("{} {} {} {} '{}' {}", now.manage, now.wish.text(), now.wish.candidates.size(),
                           now.wish.hold, now.evidence, policy->expired_rules().size());
    };
    EXPECT_EQ(text(0), "false numa 0 true 'fleet' 0");
    EXPECT_TRUE(policy->is_outdated(kNoon + 24 * 3600));
    EXPECT_EQ(text(1), "false auto 2 false '' 1");
    EXPECT_EQ(text(2), "true auto 2 false '' 2");
    EXPECT_FALSE(policy->origins.contains("default_scope.manage"));
    EXPECT_EQ(text(0), "false numa 0 true 'fleet' 0") << "the clock was wrong";
}

TEST(Policy, ReadsEveryKey) {
    const auto policy =
        load_texts({"[daemon]\nmode = \"observe\"\non_exit = \"keep\"\n"
                    "[shard]\nsize = 16\n"
                    "[default_scope]\nmanage = true\nscope = \"numa\"\n"
                    "[[workqueue]]\nmatch = \"kcryptd-*\"\nscope = \"smt\"\nstrict = true\n"});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->mode, Mode::observe);
    EXPECT_TRUE(policy->keep_on_exit);
    EXPECT_EQ(policy->shard_size, 16U);
    EXPECT_TRUE(policy->default_scope.manage);
    EXPECT_EQ(policy->default_scope.wish.text(), "numa");
    EXPECT_EQ(policy->default_scope.origin.line, 8U);
    ASSERT_EQ(policy->rules.size(), 1U);
    EXPECT_EQ(policy->rules[0].wish.text(), "smt");
    EXPECT_EQ(policy->rules[0].strict, true);
    EXPECT_EQ(policy->rules[0].origin.line, 9U);
}

TEST(Policy, TablesMergeByKeyLaterOverEarlier) {
    const auto policy = load_texts({"[daemon]\nmode = \"tune\"\n[shard]\nsize = 4\n",
                                    "[daemon]\nmode = \"observe\"\n", "[daemon]\non_exit = \"keep\"\n"});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->mode, Mode::observe);
    EXPECT_TRUE(policy->keep_on_exit);
    EXPECT_EQ(policy->shard_size, 4U);
}

TEST(Policy, RulesOfTheLatestFileAreTriedFirstAndWithinOneFromTheTop) {
    const auto policy = load_texts(
        {"[[workqueue]]\nmatch = \"a\"\n[[workqueue]]\nmatch = \"b\"\n", "[shard]\n",
         "[[workqueue]]\nmatch = \"c\"\n[[workqueue]]\nmatch = \"d\"\n", "workqueue = [{match = \"e\"}]\n"});
    ASSERT_TRUE(policy);
    EXPECT_THAT(matches(*policy), ElementsAre("e", "c", "d", "a", "b"));
}

TEST(Policy, OneOfAListOfGlobsIsEnough) {
    const auto policy =
        load_texts({"[[workqueue]]\nmatch = [\"writeback\", \"nvme-*\"]\n[[workqueue]]\nmatch = \"*\"\n"});
    ASSERT_TRUE(policy);
    for (const char* name : {"writeback", "nvme-wq"})
        EXPECT_EQ(policy->rule_for(name), policy->rules.data()) << name;
    EXPECT_EQ(policy->rule_for("raid5wq"), &policy->rules[1]);
    EXPECT_TRUE(policy->rules[0].names("nvme-wq"));
    EXPECT_FALSE(policy->rules[1].names("raid5wq")) << "a star names nothing";
}

TEST(Policy, TheFirstRuleWhoseGlobMatchesDecides) {
    const auto policy =
        load_texts({"[[workqueue]]\nmatch = \"*\"\n",
                    "[[workqueue]]\nmatch = \"kcryptd-*\"\n[[workqueue]]\nmatch = \"kcryptd-25[34]*\"\n"
                    "[[workqueue]]\nmatch = \"nvme-[a-z]?-wq\"\n"});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->rule_for("kcryptd-253:0")->match.at(0), "kcryptd-*");
    EXPECT_EQ(policy->rule_for("nvme-id-wq")->match.at(0), "nvme-[a-z]?-wq");
    EXPECT_EQ(policy->rule_for("writeback")->match.at(0), "*");
}

TEST(Policy, TheShippedFileLoadsAndStatesTheDefaults) {
    const auto policy = load_policy({SOURCE_DIR "/conf/wq-tuned.toml"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_THAT(matches(*policy), ElementsAre("*"));
    EXPECT_EQ(policy->rules[0].wish.text(), "auto");
    EXPECT_EQ(policy->rules[0].strict, std::nullopt);
}

// The defaults that the shipped file shows as comments must be the real defaults.
TEST(Policy, TheShippedCommentsAreTheDefaults) {
    std::string text = read_file(SOURCE_DIR "/conf/wq-tuned.toml").value();
    for (const char* key :
         {"mode",      "on_exit",    "size",    "alpha",      "tolerance", "window", "washout", "max_pairs",
          "min_items", "concurrent", "recheck", "run_length", "counters",  "guards", "budget",  "retry_after",
          "jitter",    "settle",     "hours",   "manage",     "scope",     "cpumask"}) {
        const auto at = text.find(std::string("\n#") + key + " = ");
        ASSERT_NE(at, std::string::npos) << key;
        text.erase(at + 1, 1);
    }
    const auto policy = load_texts({text});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    const Policy defaults;
    EXPECT_EQ(policy->mode, defaults.mode);
    EXPECT_EQ(policy->keep_on_exit, defaults.keep_on_exit);
    EXPECT_EQ(policy->shard_size, defaults.shard_size);
    EXPECT_EQ(policy->judge, defaults.judge);
    EXPECT_EQ(policy->default_scope.manage, defaults.default_scope.manage);
    EXPECT_EQ(policy->default_scope.wish.text(), defaults.default_scope.wish.text());
    EXPECT_EQ(policy->default_mask, defaults.default_mask);
}

}  // namespace
}  // namespace wq
