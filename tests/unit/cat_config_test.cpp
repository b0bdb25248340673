// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gtest/gtest.h>

#include <random>

#include "policy/load_policy.h"
#include "policy/policy_text.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::File;
using test::TempTree;

void expect_same(const ScopeWish& a, const ScopeWish& b) {
    EXPECT_EQ(a.text(), b.text());
    EXPECT_EQ(a.candidates, b.candidates);
    EXPECT_EQ(a.hold, b.hold);
}

// Compares everything except the origins.
void expect_same(const Policy& a, const Policy& b) {
    EXPECT_EQ(a.mode, b.mode);
    EXPECT_EQ(a.keep_on_exit, b.keep_on_exit);
    EXPECT_EQ(a.judge, b.judge);
    EXPECT_EQ(a.shard_size, b.shard_size);
    EXPECT_EQ(a.default_scope.manage, b.default_scope.manage);
    expect_same(a.default_scope.wish, b.default_scope.wish);
    EXPECT_EQ(a.default_scope.expires, b.default_scope.expires);
    EXPECT_EQ(a.default_scope.evidence, b.default_scope.evidence);
    EXPECT_EQ(a.default_mask, b.default_mask);
    EXPECT_EQ(a.metrics, b.metrics);
    ASSERT_EQ(a.rules.size(), b.rules.size());
    for (std::size_t i = 0; i < a.rules.size(); i++) {
        EXPECT_EQ(a.rules[i].match, b.rules[i].match);
        expect_same(a.rules[i].wish, b.rules[i].wish);
        EXPECT_EQ(a.rules[i].strict, b.rules[i].strict);
        EXPECT_EQ(a.rules[i].mask, b.rules[i].mask);
        EXPECT_EQ(a.rules[i].expires, b.rules[i].expires);
        EXPECT_EQ(a.rules[i].evidence, b.rules[i].evidence);
    }
}

void expect_reads_back(const Policy& policy) {
    const std::string text = policy_toml(policy, {"/etc/one.toml", "bad\nname\xff"});
    const TempTree tree{File("merged.toml", text)};
    const auto read = load_policy({tree.path("merged.toml")});
    ASSERT_TRUE(read) << read.error()[0].underlined() << "\n" << text;
    expect_same(policy, *read);
}

Policy loaded(const std::string& text) {
    const TempTree tree{File("a.toml", text)};
    return load_policy({tree.path("a.toml")}).value();
}

TEST(CatConfig, WhatIsBuiltInAndWhatIsShippedReadBack) {
    expect_reads_back(Policy{});
    expect_reads_back(load_policy({SOURCE_DIR "/conf/wq-tuned.toml"}).value());
}

// Other spellings than those that are printed.
TEST(CatConfig, OddTextsReadBack) {
    expect_reads_back(loaded(R"([judge]
alpha = 1e-6
window = "1h"
guards = [{ counter = "file:/a b", tolerance = "100%" }]
counters = ["tail", { counter = "items", higher = "worse" }, "diskstats:vda.wkB",
            { counter = "file:/run/app/\" \\ é", higher = "better" }]
[metrics]
textfile = "/a \"b\" é/c.prom"
[[workqueue]]
match = "a\u007f\"\\\t\u0001é\U0001F600#"
strict = false
)"));
}

// A random policy that may use every setting; the same sequence on each run.
Policy random_policy(std::mt19937& random) {
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    const auto wish = [&] {
        ScopeWish out{static_cast<ScopeWish::Kind>(below(4)), kAllScopes[below(6)]};
        if (out.kind == ScopeWish::Kind::automatic)
            out.candidates.assign(kAllScopes.begin(), kAllScopes.begin() + below(7));
        out.hold = out.sets_first() && below(2) == 1;
        return out;
    };
    const auto mask = [&] {
        const unsigned kind = below(3);
        MaskWish out{static_cast<MaskWish::Kind>(kind), {}};
        if (out.kind == MaskWish::Kind::fixed) out.cpus = CpuSet{below(8), below(9000)};
        return out;
    };
    Policy out;
    out.mode = static_cast<Mode>(below(2));
    out.keep_on_exit = below(2) == 1;
    out.shard_size = 1 + below(kMaxShardSize);
    Judging& judge = out.judge;
    // A tolerance is written in percent and stored divided by 100.
    judge.settings = {(1 + below(500'000)) / 1e6, below(10'001) / 1e2 / 100, 10'000 - below(9'000),
                      below(1'000'000'001)};
    judge.window = std::chrono::milliseconds(1'000 + below(3'599'000));
    judge.washout = std::chrono::milliseconds(below(1'000));
    judge.concurrent = 1 + below(kMaxConcurrent);
    judge.recheck = std::chrono::seconds(1 + below(24 * 3600));
    judge.run_length = 1 + below(kMaxRunLength);
    judge.budget = std::chrono::seconds(1 + below(24 * 3600));
    judge.settle = std::chrono::seconds(below(24 * 3600 + 1));
    judge.retry_after = std::chrono::seconds(below(315'360'001));
    judge.jitter = std::chrono::seconds(below(7 * 24 * 3600 + 1));
    judge.hours.begin = below(1440);
    judge.hours.end = (judge.hours.begin + 1 + below(1438)) % 1440;
    judge.counters.clear();
    for (unsigned i = 0, n = 1 + below(kMaxCounters); i < n; i++)
        judge.counters.push_back({"file:/" + std::to_string(i), below(2) == 1});
    judge.guards.clear();
    for (unsigned i = 0, n = below(kMaxCounters + 1); i < n; i++)
        judge.guards.push_back({"file:/" + std::to_string(i), below(10'001) / 1e2 / 100});
    out.default_scope.manage = below(2) == 1;
    out.default_scope.wish = wish();
    if (below(2) == 1) out.default_scope.expires = "2027-01-31";
    if (below(2) == 1) out.default_scope.evidence = "x\ny";
    out.default_mask = mask();
    if (below(2) == 1)
        out.metrics.textfile = "/" + std::string(1, static_cast<char>(1 + below(127))) + "x.prom";
    for (unsigned i = 0, n = below(5); i < n; i++) {
        WorkqueueRule rule{{}, wish(), {}, {"a\nb", i + 1}};
        for (unsigned j = 0, m = 1 + below(3); j < m; j++)
            rule.match.emplace_back(1, static_cast<char>(1 + below(127)));
        if (below(2) == 1) rule.strict = below(2) == 1;
        rule.mask = mask();
        if (below(2) == 1) rule.expires = "20" + std::to_string(10 + below(90)) + "-01-31";
        if (below(2) == 1) rule.evidence = std::string(1, static_cast<char>(1 + below(127))) + "\"x";
        out.rules.push_back(rule);
    }
    return out;
}

TEST(CatConfig, AnyPolicyReadsBack) {
    std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same sequence each time
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); i++) expect_reads_back(random_policy(random));
}

// The hash covers the settings, not their origins.
TEST(CatConfig, TheHashIsThatOfThePolicy) {
    EXPECT_EQ(policy_hash(loaded("")), policy_hash(loaded("[shard]\n\nsize = 8 # as built in\n")));
    EXPECT_NE(policy_hash(loaded("")), policy_hash(loaded("[shard]\nsize = 9\n")));
    EXPECT_NE(policy_hash(loaded("")), policy_hash(loaded("[[workqueue]]\nmatch = \"*\"\n")));
    const TempTree one{File("a.toml", "[shard]\n"), File("b.toml", "[daemon]\n")};
    const TempTree copy{File("c.toml", "[shard]\n"), File("d.toml", "[daemon]\n")};
    EXPECT_EQ(sources_hash({one.path("a.toml"), one.path("b.toml")}),
              sources_hash({copy.path("c.toml"), copy.path("d.toml")}));
    EXPECT_NE(sources_hash({one.path("a.toml")}), sources_hash({one.path("a.toml"), one.path("b.toml")}));
    EXPECT_EQ(sources_hash({copy.path("nothing")}), "") << "no hash of half of them";
}

}  // namespace
}  // namespace wq
