// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "policy_texts.h"

namespace wq {
namespace {

using test::load_texts;
using test::mistakes_in_texts;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

HostFacts grace() {
    HostFacts facts;
    facts.arch = "aarch64";
    facts.cpu_vendor = "ARM";
    facts.cpu_models = {"Grace A02", "Neoverse-V2"};
    facts.llc_cores = 72;
    facts.cores = 144;
    facts.numa_nodes = 2;
    facts.smt = false;
    facts.kernel = "6.12.57-64k";
    facts.hostname = "web-7";
    facts.machine_id = "0123456789abcdef0123456789abcdef";  // position 55.9552% in canaries of "grace-canary"
    facts.is_virtual = false;
    facts.features = [] { return KernelFeatures{false, true, {}, {}}; };
    return facts;
}

tl::expected<Policy, PolicyErrors> load_on(const std::vector<std::string>& texts,
                                           const HostFacts& facts = grace()) {
    return load_texts(texts, [&] { return facts; });
}

std::vector<std::string> mistakes_on_grace(const std::vector<std::string>& texts) {
    return mistakes_in_texts(texts, grace);
}

std::string host(const std::string& when, const std::string& name = "grace-canary") {
    return "[[host]]\nname = \"" + name + "\"\nwhen = { " + when + " }\n";
}

// Why a host table with the conditions WHEN does not match the host; empty if it matches.
std::vector<std::string> misses(const std::string& when, const HostFacts& facts = grace()) {
    return load_on({host(when)}, facts).value().hosts.at(0).misses;
}

std::vector<std::string> matches_of(const Policy& policy) {
    std::vector<std::string> out;
    for (const WorkqueueRule& rule : policy.rules) out.push_back(rule.match.at(0));
    return out;
}

TEST(PolicyHost, TheExampleOfTheDesignMatches) {
    const auto policy = load_on({R"([[host]]
name = "grace-canary"
when = { arch = "aarch64", cpu_model = "*Grace*", llc_cores = ">=16", kernel = ">=6.6", hostname = "web-*", virtual = false, canary = "55.97%" }
judge = { alpha = 0.01 }
)"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    ASSERT_THAT(policy->hosts, SizeIs(1));
    EXPECT_EQ(policy->hosts[0].name, "grace-canary");
    EXPECT_EQ(policy->hosts[0].origin.line, 1U);
    EXPECT_TRUE(policy->hosts[0].matches());
    EXPECT_EQ(policy->judge.settings.alpha, 0.01);
    EXPECT_EQ(policy->origins.at("judge.alpha").line, 4U);
}

TEST(PolicyHost, EachConditionHoldsOrSaysWhyNot) {
    const std::vector<std::array<std::string, 3>> cases = {
        {R"(arch = "aarch*")", R"(arch = "x86_64")", R"(arch is "aarch64", not "x86_64")"},
        {R"(cpu_vendor = "ARM")", R"(cpu_vendor = "*Intel")", R"(cpu_vendor is "ARM", not "*Intel")"},
        {R"(cpu_model = "Neoverse-V?")", R"(cpu_model = "*EPYC*")",
         R"(cpu_model is "Grace A02" or "Neoverse-V2", not "*EPYC*")"},
        {R"(llc_cores = ">=16")", R"(llc_cores = "<16")", R"(llc_cores is 72, not "<16")"},
        {R"(cores = 144)", R"(cores = "145")", R"(cores is 144, not "145")"},
        {R"(numa_nodes = "1-2")", R"(numa_nodes = 1)", R"(numa_nodes is 2, not "1")"},
        {R"(smt = false)", R"(smt = true)", "smt is false, not true"},
        {R"(kernel = "6.6-7.0")", R"(kernel = ">=7.1")", R"(kernel is "6.12.57-64k", not ">=7.1")"},
        {R"(hostname = "web-[0-9]")", R"(hostname = "db-*")", R"(hostname is "web-7", not "db-*")"},
        {R"(virtual = false)", R"(virtual = true)", "virtual is false, not true"},
        {R"(has = "exact_parsing")", R"(has = "cache_shard")", "has: this kernel has no cache_shard"},
        {R"(canary = "100%")", R"(canary = "0%")", "canary: this host is at 55.9552%, not below 0%"},
        {R"(canary = "55.97%")", R"(canary = "55.95%")",
         "canary: this host is at 55.9552%, not below 55.95%"},
    };
    for (const auto& [holds, fails, why] : cases) {
        EXPECT_THAT(misses(holds), IsEmpty()) << holds;
        EXPECT_THAT(misses(fails), ElementsAre(why)) << fails;
    }
    EXPECT_THAT(misses(R"(arch = "aarch64", cores = "<8", smt = true)"), SizeIs(2)) << "all must hold";
    EXPECT_EQ(load_on({host(R"(arch = "aarch64", cores = "<8")") + "shard.size = 2\n"})->shard_size, 8U);
    EXPECT_EQ(load_on({"[[host]]\nname = \"a\"\nshard.size = 2\n"}, {})->shard_size, 2U) << "no condition";
}

TEST(PolicyHost, WhatIsNotKnownDoesNotMatch) {
    using Keys = std::vector<const char*>;
    for (const auto& [value, keys] :
         {std::pair<const char*, Keys>{" = \"*\"", {"arch", "cpu_vendor", "cpu_model", "hostname"}},
          {" = \">=0\"", {"llc_cores", "cores", "numa_nodes", "kernel"}},
          {" = false", {"smt", "virtual"}}})
        for (const std::string key : keys)
            EXPECT_THAT(misses(key + value, {}), ElementsAre(key + " is not known here"));
    EXPECT_THAT(misses("canary = \"100%\"", {}), ElementsAre("canary: the machine id is not known here"));
}

TEST(PolicyHost, AFeatureIsOneThatStatusLists) {
    for (const NamedFeature& feature : kFeatures) {
        HostFacts facts;
        const std::string when = "has = \"" + std::string(feature.name) + "\"";
        const std::string unknown =
            "has: whether the kernel has " + std::string(feature.name) + " is not known here";
        EXPECT_THAT(misses(when, facts), ElementsAre(unknown));
        facts.features = [] { return KernelFeatures{}; };
        EXPECT_THAT(misses(when, facts), ElementsAre(unknown));
        facts.features = [&] {
            KernelFeatures features;
            features.*feature.value = true;
            return features;
        };
        EXPECT_THAT(misses(when, facts), IsEmpty());
    }
}

TEST(PolicyHost, MatchingTablesWinOverDropInsAndTheLastOverTheFirst) {
    const std::string yes =
        host("arch = \"aarch64\"", "yes") + "shard = { size = 3 }\ndaemon.mode = \"tune\"\n";
    const std::string no = host("arch = \"x86_64\"", "no") + "shard = { size = 4 }\n";
    const std::string last = host("smt = false", "last") + "[host.shard]\nsize = 5\n";
    EXPECT_EQ(load_on({yes + no, "[shard]\nsize = 2\n"})->shard_size, 3U);
    const auto policy = load_on({yes + no + last, "[shard]\nsize = 2\n[daemon]\non_exit = \"keep\"\n"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_EQ(policy->shard_size, 5U);
    EXPECT_EQ(policy->mode, Mode::tune);
    EXPECT_TRUE(policy->keep_on_exit);
    EXPECT_EQ(load_on({last, yes})->shard_size, 3U);
}

TEST(PolicyHost, RulesOfTheLastMatchingTableAreTriedFirst) {
    const auto rules = [](const std::string& name) {
        return "[[host.workqueue]]\nmatch = \"" + name + "1\"\n[[host.workqueue]]\nmatch = \"" + name +
               "2\"\n";
    };
    const auto policy =
        load_on({"[[workqueue]]\nmatch = \"main\"\n" + host("smt = false", "a") + rules("a") +
                     host("smt = true", "b") + rules("b"),
                 host("cores = \">1\"", "c") + rules("c") + "[[workqueue]]\nmatch = \"drop-in\"\n"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_THAT(matches_of(*policy), ElementsAre("c1", "c2", "a1", "a2", "drop-in", "main"));
}

TEST(PolicyHost, FactsAreAskedForOnceAndOnlyWhereSomethingNeedsThem) {
    int asked = 0, features = 0;
    const auto facts = [&] {
        asked++;
        HostFacts out = grace();
        out.features = [&] {
            features++;
            return KernelFeatures{};
        };
        return out;
    };
    EXPECT_TRUE(load_texts({"[shard]\nsize = 2\n"}, facts));
    EXPECT_EQ(asked, 0);
    EXPECT_TRUE(load_texts({host("smt = false", "a") + host("smt = true", "b")}, facts));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(features, 0) << "no condition asks for one";
}

TEST(PolicyHost, ANameIsTakenOnce) {
    const std::string one = host("smt = true", "one");
    const auto errors = mistakes_on_grace({one, host("", "two") + one});
    ASSERT_THAT(errors, SizeIs(1));
    EXPECT_THAT(errors[0], StartsWith("1.toml:5:8: host \"one\" already exists ("));
    EXPECT_THAT(errors[0], HasSubstr("0.toml:1)"));
}

TEST(PolicyHost, ValuesOfATableMustGoWithThoseOutsideOfTables) {
    const std::string window = host("arch = \"no\"", "a") + "judge = { window = \"30s\" }\n";
    EXPECT_TRUE(load_on({window}));
    EXPECT_THAT(
        mistakes_on_grace({window, "[judge]\nwindow = \"40s\"\nwashout = \"35s\"\n"}),
        ElementsAre(StartsWith(
            "0.toml:4:20: washout must be less than window: it is 35s (1.toml:3), and window is 30s (")));
}

TEST(PolicyHost, ValuesOfMatchingTablesMustGoTogether) {
    const std::string washout = host("ARCH", "a") + "judge = { washout = \"1s\" }\n";
    const std::string window = host("ARCH", "b") + "judge = { window = \"600ms\" }\n";
    const auto on = [](std::string text, const std::string& arch) {
        return text.replace(text.find("ARCH"), 4, "arch = \"" + arch + "\"");
    };
    EXPECT_TRUE(load_on({on(washout, "aarch64"), on(window, "x86_64")}));
    EXPECT_THAT(mistakes_on_grace({on(washout, "aarch64"), on(window, "aarch64")}),
                ElementsAre(StartsWith("1.toml:4:20: washout must be less than window: it is 1s (")));
}

}  // namespace
}  // namespace wq
