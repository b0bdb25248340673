// SPDX-License-Identifier: LGPL-2.1-or-later
// `cpumask` of rules and of [default_mask]: what is taken, and each mistake at its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/load_policy.h"
#include "policy/policy_text.h"
#include "temp_tree.h"

namespace wq {
namespace {

using test::File;
using test::TempTree;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Eight CPUs, 4 and 5 of them isolated at boot.
HostFacts host() {
    HostFacts facts;
    facts.hostname = "web-7";
    facts.cpus = [] { return HostCpus{CpuSet::range(0, 7), {4, 5}}; };
    return facts;
}

tl::expected<Policy, PolicyErrors> load(const std::vector<std::string>& texts,
                                        const FactsSource& facts = host) {
    TempTree tree;
    std::vector<std::string> files;
    for (const std::string& text : texts) {
        files.push_back(tree.path(std::to_string(files.size()) + ".toml"));
        tree.add(File(std::to_string(files.size() - 1) + ".toml", text));
    }
    return load_policy(files, facts);
}

// "0.toml:1:11: MESSAGE" of each.
std::vector<std::string> mistakes(const std::vector<std::string>& texts) {
    const auto policy = load(texts);
    std::vector<std::string> out;
    for (const PolicyError& error : policy ? PolicyErrors{} : policy.error()) {
        const std::string text = error.text();
        out.push_back(text.substr(text.find(".toml") - 1));
    }
    return out;
}

std::vector<std::string> of_default(const std::string& value) {
    return mistakes({"default_mask.cpumask = " + value});
}

TEST(PolicyMasks, AreReadAndPrinted) {
    const auto policy =
        load({"[default_mask]\ncpumask = \"housekeeping\"\n"
              "[[workqueue]]\nmatch = \"kcryptd-*\"\ncpumask = \"0-2,3\"\n"
              "[[workqueue]]\nmatch = \"*\"\ncpumask = \"leave\"\n"});
    ASSERT_TRUE(policy) << policy.error()[0].text();
    EXPECT_EQ(policy->default_mask.text(), "housekeeping");
    EXPECT_EQ(policy->rule_for("kcryptd-1")->mask.text(), "0-3");
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "auto") << "a rule may have a mask alone";
    EXPECT_EQ(policy->rule_for("b")->mask, MaskWish{});
    EXPECT_TRUE(policy->wants_masks());
    const std::string printed = policy_toml(*policy, {});
    const auto again = load({printed});
    ASSERT_TRUE(again) << again.error()[0].text() << printed;
    EXPECT_EQ(policy_hash(*again), policy_hash(*policy));
    EXPECT_NE(policy_hash(*again), policy_hash(load({"[[workqueue]]\nmatch = \"*\"\n"}).value()));
}

TEST(PolicyMasks, NobodyAsksByDefault) {
    const auto policy = load({"[[workqueue]]\nmatch = \"*\"\n"});
    EXPECT_FALSE(policy->wants_masks());
    EXPECT_EQ(policy->default_mask.text(), "leave");
}

TEST(PolicyMasks, AnExpiredRuleAsksForNone) {
    auto policy = load({"[[workqueue]]\nmatch = \"*\"\ncpumask = \"0\"\nexpires = \"2027-01-15\"\n"});
    EXPECT_TRUE(policy->wants_masks());
    policy->expire(1'800'100'800);
    EXPECT_FALSE(policy->wants_masks());
}

TEST(PolicyMasks, WhatIsNoListIsRefusedAtItsPlace) {
    EXPECT_THAT(of_default("\"\""), ElementsAre(StartsWith("0.toml:1:24: cpumask must have a CPU")));
    for (const char* value : {"\"x\"", "\"7-0\"", "\"ff\"", "\"0-99999\"", "\"0,\""})
        EXPECT_THAT(of_default(value), ElementsAre(StartsWith("0.toml:1:24: cpumask must be"))) << value;
    EXPECT_THAT(of_default("true"), ElementsAre(StartsWith("0.toml:1:24: cpumask must be a string")));
    EXPECT_THAT(of_default("3"), IsEmpty()) << "CPU 3";
}

TEST(PolicyMasks, CpusThatTheHostDoesNotHaveAreRefused) {
    EXPECT_THAT(of_default("\"0-9\""),
                ElementsAre("0.toml:1:24: cpumask has CPUs 8-9, which this host does not have (0-7)"));
    EXPECT_THAT(mistakes({"", "[[workqueue]]\nmatch = \"a\"\ncpumask = \"8\"\n"}),
                ElementsAre("1.toml:3:11: cpumask has CPU 8, which this host does not have (0-7)"));
}

TEST(PolicyMasks, CpusThatAreIsolatedAtBootAreRefused) {
    EXPECT_THAT(mistakes({"[[workqueue]]\nmatch = \"a\"\ncpumask = \"3-6\"\n"}),
                ElementsAre("0.toml:3:11: cpumask has isolated CPUs 4-5 (isolcpus=, nohz_full=)"));
}

TEST(PolicyMasks, TheCpusOfAHostTableCountWhereItMatches) {
    const std::string rule = "workqueue = [{ match = \"a\", cpumask = \"9\" }]\n";
    const std::string other = "[[host]]\nname = \"a\"\nwhen.hostname = \"db-*\"\n";
    const std::string here = "[[host]]\nname = \"a\"\nwhen.hostname = \"web-*\"\n";
    EXPECT_THAT(mistakes({other + rule}), IsEmpty());
    EXPECT_THAT(mistakes({here + rule}), ElementsAre(StartsWith("0.toml:4:39: cpumask has CPU 9")));
    EXPECT_THAT(mistakes({other + "default_mask.cpumask = \"\"\n"}),
                ElementsAre(StartsWith("0.toml:4:24: cpumask must have a CPU")))
        << "no host could have it";
}

TEST(PolicyMasks, ALaterDefaultMaskReplacesTheEarlierOne) {
    EXPECT_THAT(mistakes({"default_mask.cpumask = \"9\"\n", "default_mask.cpumask = \"leave\"\n"}),
                IsEmpty());
}

TEST(PolicyMasks, WhereTheHostIsNotKnownNoCpuIsRefused) {
    EXPECT_TRUE(load({"default_mask.cpumask = \"900\"\n"}, {}));
    EXPECT_TRUE(load({"default_mask.cpumask = \"900\"\n"}, [] { return HostFacts{}; }));
}

}  // namespace
}  // namespace wq
