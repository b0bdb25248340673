// SPDX-License-Identifier: LGPL-2.1-or-later
// `cpumask` of rules and of [default_mask]: accepted values, and the place of each error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/policy_text.h"
#include "policy_texts.h"

namespace wq {
namespace {

using test::load_texts;
using test::mistakes_in_texts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Eight CPUs, 4 and 5 of them isolated at boot.
HostFacts masked_host() {
    HostFacts facts;
    facts.hostname = "web-7";
    facts.cpus = [] { return HostCpus{CpuSet::range(0, 7), {4, 5}}; };
    return facts;
}

std::vector<std::string> of_default(const std::string& value) {
    return mistakes_in_texts({"default_mask.cpumask = " + value}, masked_host);
}

TEST(PolicyMasks, AreReadAndPrinted) {
    const auto policy = load_texts({"[default_mask]\ncpumask = \"housekeeping\"\n"
                                    "[[workqueue]]\nmatch = \"kcryptd-*\"\ncpumask = \"0-2,3\"\n"
                                    "[[workqueue]]\nmatch = \"*\"\ncpumask = \"leave\"\n"},
                                   masked_host);
    ASSERT_TRUE(policy) << policy.error()[0].text();
    EXPECT_EQ(policy->default_mask.text(), "housekeeping");
    EXPECT_EQ(policy->rule_for("kcryptd-1")->mask.text(), "0-3");
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "auto") << "a rule may have a mask alone";
    EXPECT_EQ(policy->rule_for("b")->mask, MaskWish{});
    EXPECT_TRUE(policy->wants_masks());
    const std::string printed = policy_toml(*policy, {});
    const auto again = load_texts({printed}, masked_host);
    ASSERT_TRUE(again) << again.error()[0].text() << printed;
    EXPECT_EQ(policy_hash(*again), policy_hash(*policy));
    EXPECT_NE(policy_hash(*again), policy_hash(load_texts({"[[workqueue]]\nmatch = \"*\"\n"}).value()));
}

TEST(PolicyMasks, NobodyAsksByDefault) {
    const auto policy = load_texts({"[[workqueue]]\nmatch = \"*\"\n"}, masked_host);
    EXPECT_FALSE(policy->wants_masks());
    EXPECT_EQ(policy->default_mask.text(), "leave");
}

TEST(PolicyMasks, AnExpiredRuleAsksForNone) {
    auto policy = load_texts({"[[workqueue]]\nmatch = \"*\"\ncpumask = \"0\"\nexpires = \"2027-01-15\"\n"},
                             masked_host);
    EXPECT_TRUE(policy->wants_masks());
    policy->expire(1'800'100'800);
    EXPECT_FALSE(policy->wants_masks());
}

TEST(PolicyMasks, WhatIsNoListIsRefusedAtItsPlace) {
    EXPECT_THAT(of_default("\"\""),
                ElementsAre(StartsWith("0.toml:1:24: cpumask must be a list with at least one CPU")));
    for (const char* value : {"\"x\"", "\"7-0\"", "\"ff\"", "\"0-99999\"", "\"0,\""})
        EXPECT_THAT(of_default(value), ElementsAre(StartsWith("0.toml:1:24: cpumask must be"))) << value;
    EXPECT_THAT(of_default("true"), ElementsAre(StartsWith("0.toml:1:24: cpumask must be a string")));
    EXPECT_THAT(of_default("3"), IsEmpty()) << "CPU 3";
}

TEST(PolicyMasks, CpusThatTheHostDoesNotHaveAreRefused) {
    EXPECT_THAT(of_default("\"0-9\""),
                ElementsAre("0.toml:1:24: cpumask has CPUs 8-9, which this host does not have (0-7)"));
    EXPECT_THAT(mistakes_in_texts({"", "[[workqueue]]\nmatch = \"a\"\ncpumask = \"8\"\n"}, masked_host),
                ElementsAre("1.toml:3:11: cpumask has CPU 8, which this host does not have (0-7)"));
}

TEST(PolicyMasks, CpusThatAreIsolatedAtBootAreRefused) {
    EXPECT_THAT(mistakes_in_texts({"[[workqueue]]\nmatch = \"a\"\ncpumask = \"3-6\"\n"}, masked_host),
                ElementsAre("0.toml:3:11: cpumask has isolated CPUs 4-5 (isolcpus=, nohz_full=)"));
}

TEST(PolicyMasks, TheCpusOfAHostTableCountWhereItMatches) {
    const std::string rule = "workqueue = [{ match = \"a\", cpumask = \"9\" }]\n";
    const std::string other = "[[host]]\nname = \"a\"\nwhen.hostname = \"db-*\"\n";
    const std::string here = "[[host]]\nname = \"a\"\nwhen.hostname = \"web-*\"\n";
    EXPECT_THAT(mistakes_in_texts({other + rule}, masked_host), IsEmpty());
    EXPECT_THAT(mistakes_in_texts({here + rule}, masked_host),
                ElementsAre(StartsWith("0.toml:4:39: cpumask has CPU 9")));
    EXPECT_THAT(mistakes_in_texts({other + "default_mask.cpumask = \"\"\n"}, masked_host),
                ElementsAre(StartsWith("0.toml:4:24: cpumask must be a list with at least one CPU")))
        << "no host could have it";
}

TEST(PolicyMasks, ALaterDefaultMaskReplacesTheEarlierOne) {
    EXPECT_THAT(mistakes_in_texts({"default_mask.cpumask = \"9\"\n", "default_mask.cpumask = \"leave\"\n"},
                                  masked_host),
                IsEmpty());
}

TEST(PolicyMasks, WhereTheHostIsNotKnownNoCpuIsRefused) {
    EXPECT_TRUE(load_texts({"default_mask.cpumask = \"900\"\n"}, {}));
    EXPECT_TRUE(load_texts({"default_mask.cpumask = \"900\"\n"}, [] { return HostFacts{}; }));
}

}  // namespace
}  // namespace wq
