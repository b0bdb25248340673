// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/load_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "base/file.h"
#include "policy/policy_text.h"
#include "policy_texts.h"

namespace wq {
namespace {

using namespace std::chrono_literals;
using test::load_texts;
using test::mistakes_in_texts;
using testing::ElementsAre;
using testing::StartsWith;

std::vector<std::string> matches(const Policy& policy) {
    std::vector<std::string> out;
    for (const WorkqueueRule& rule : policy.rules) out.push_back(rule.match.at(0));
    return out;
}

constexpr std::int64_t kNoon = 1'800'014'400;  // 2027-01-15 12:00 UTC

TEST(Policy, ARuleThatHasExpiredMatchesNothing) {
    auto policy =
        load_texts({"[[workqueue]]\nmatch = \"kcryptd-*\"\nscope = \"smt\"\nexpires = \"2027-01-15\"\n"
                    "evidence = \"fleet, fdr 5%\"\n[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"});
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->rules[0].evidence, "fleet, fdr 5%");
    EXPECT_FALSE(policy->expire(kNoon)) << "the last day";
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "smt");
    EXPECT_TRUE(policy->expire(kNoon + 12 * 3600)) << "midnight in UTC";
    EXPECT_FALSE(policy->expire(kNoon + 12 * 3600));
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "leave") << "the next rule decides";
    ASSERT_EQ(policy->expired_rules().size(), 1U);
    EXPECT_EQ(policy->expired_rules()[0].line, 1U);
    policy->expire(kNoon);
    EXPECT_EQ(policy->rule_for("kcryptd-1")->wish.text(), "smt") << "the clock was wrong";
}

// After its last day the keys of a [default_scope] table do not apply, and earlier sources decide.
TEST(Policy, ADefaultScopeThatHasExpiredGivesWayToTheEarlierOnes) {
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
    EXPECT_EQ(text(1), "false auto 2 false '' 1");
    EXPECT_EQ(text(2), "true auto 2 false '' 2");
    EXPECT_FALSE(policy->origins.contains("default_scope.manage"));
    EXPECT_EQ(text(0), "false numa 0 true 'fleet' 0") << "the clock was wrong";
}

TEST(Policy, TablesMergeByKeyAndRulesOfTheLatestFileAreTriedFirst) {
    const auto policy = load_texts(
        {"[daemon]\nmode = \"tune\"\n[shard]\nsize = 4\n[judge]\nwindow = \"20s\"\ncounters = [\"tail\", "
         "\"exec\"]\n[[workqueue]]\nmatch = \"*\"\n[[workqueue]]\nmatch = \"b\"\n",
         "[daemon]\nmode = \"observe\"\n[judge]\nwashout = \"5s\"\ncounters = [\"lock\"]\n",
         "[daemon]\non_exit = \"keep\"\n[[workqueue]]\nmatch = [\"writeback\", \"nvme-[a-z]?-wq\"]\n"
         "[[workqueue]]\nmatch = \"kcryptd-*\"\n[[workqueue]]\nmatch = \"kcryptd-25[34]*\"\n",
         "workqueue = [{match = \"e\"}]\n"});
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_EQ(policy->mode, Mode::observe);
    EXPECT_TRUE(policy->keep_on_exit);
    EXPECT_EQ(policy->shard_size, 4U);
    EXPECT_EQ(policy->judge.window, 20s);
    EXPECT_EQ(policy->judge.washout, 5s);
    EXPECT_EQ(policy->judge.counters, (std::vector<JudgedCounter>{{"lock", false}})) << "replaced";
    EXPECT_EQ(policy->origins.at("judge.washout").line, 4U);
    EXPECT_THAT(matches(*policy), ElementsAre("e", "writeback", "kcryptd-*", "kcryptd-25[34]*", "*", "b"));
    const auto rule = [&](const char* name) { return policy->rule_for(name) - policy->rules.data(); };
    EXPECT_EQ(rule("writeback"), 1);
    EXPECT_EQ(rule("nvme-id-wq"), 1) << "one of a list is enough";
    EXPECT_EQ(rule("kcryptd-253:0"), 2);
    EXPECT_EQ(rule("b"), 4);
    EXPECT_TRUE(policy->rules[1].names("writeback"));
    EXPECT_FALSE(policy->rules[4].names("b")) << "a star names nothing";
    EXPECT_EQ(load_texts({"[[workqueue]]\nmatch = \"b\"\n"})->rule_for("a"), nullptr);
}

// The defaults that the shipped file shows as comments must be the real defaults.
TEST(Policy, TheShippedCommentsAreTheDefaults) {
    const auto shipped = load_policy({SOURCE_DIR "/conf/wq-tuned.toml"});
    ASSERT_TRUE(shipped) << shipped.error()[0].underlined();
    EXPECT_THAT(matches(*shipped), ElementsAre("*"));
    EXPECT_EQ(shipped->rules[0].wish.text(), "auto");
    EXPECT_EQ(shipped->rules[0].strict, std::nullopt);
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

// ---- [judge]

// A [judge] table with LINE.
std::string judge(const std::string& line) {
    return "[judge]\n" + line + "\n";
}

Judging judging(const std::string& line) {
    const auto policy = load_texts({judge(line)});
    if (policy) return policy->judge;
    ADD_FAILURE() << policy.error()[0].text();
    return {};
}

// What is read is what policy_json() prints.
TEST(PolicyJudge, TheEndsOfEveryRangeAreAllowed) {
    for (const char* line :
         {"alpha = 0.5",      "alpha = 1e-06",          "tolerance = \"0%\"",   "tolerance = \"100%\"",
          "window = \"1h\"",  "washout = \"0s\"",       "max_pairs = 1",        "max_pairs = 10000",
          "min_items = 0",    "min_items = 1000000000", "retry_after = \"0s\"", "retry_after = \"3650d\"",
          "jitter = \"0s\"",  "jitter = \"7d\"",        "concurrent = 1",       "concurrent = 16",
          "recheck = \"1s\"", "recheck = \"1d\"",       "run_length = 1",       "run_length = 1000000000",
          "budget = \"1s\"",  "budget = \"1d\"",        "settle = \"0s\"",      "settle = \"1d\""}) {
        const auto policy = load_texts({judge(line)});
        ASSERT_TRUE(policy) << policy.error()[0].text();
        const std::string key(line, std::strcspn(line, " "));
        const auto value = policy_json(*policy, {})["policy"]["judge"][key];
        EXPECT_EQ(key + " = " + toml_text(value), line);
    }
    EXPECT_EQ(judging("window = \"500ms\"\nwashout = \"499ms\"").window, kMinWindow);
}

// A table may say which way is better.
TEST(PolicyJudge, ACounterIsACostUnlessItCountsWhatIsDone) {
    const auto read = judging(
        R"(counters = ["latency", "items", "psi:io.full", "diskstats:vda.wkB", # the disk
        "file:/p99", { counter = "file:/rps", higher = "better" },
        { counter = "throughput", higher = "worse" }, { counter = "diskstats:vda.rkB" }])");
    std::string text;
    for (const JudgedCounter& each : read.counters) text += each.name + (each.higher_is_better ? "+ " : " ");
    EXPECT_EQ(text,
              "latency items+ psi:io.full diskstats:vda.wkB+ file:/p99 file:/rps+ throughput "
              "diskstats:vda.rkB+ ");
    EXPECT_EQ(judging("[[judge.counters]]\ncounter = \"exec\"").counters,
              (std::vector<JudgedCounter>{{"exec", false}}));
}

TEST(PolicyJudge, AGuardHasACounterAndATolerance) {
    const auto read = judging(
        "guards = [{ counter = \"throughput\", tolerance = \"0%\" },\n"
        "{ tolerance = \"2.5%\", counter = \"others\" }, { counter = \"psi:io.full\", tolerance = \"100%\" "
        "}, { counter = \"workers\", tolerance = \"50%\" }]");
    EXPECT_EQ(read.guards, (std::vector<Guard>{
                               {"throughput", 0}, {"others", 0.025}, {"psi:io.full", 1}, {"workers", 0.5}}));
    EXPECT_TRUE(judging("guards = []").guards.empty());
}

// ---- masks

// Eight CPUs, 4 and 5 of them isolated at boot.
HostFacts masked_host() {
    HostFacts facts;
    facts.hostname = "web-7";
    facts.cpus = [] { return HostCpus{CpuSet::range(0, 7), {4, 5}}; };
    return facts;
}

TEST(PolicyMasks, AreRead) {
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
}

TEST(PolicyMasks, NobodyAsksByDefaultNorDoesARuleThatExpired) {
    const std::string rule = "[[workqueue]]\nmatch = \"*\"\n";
    EXPECT_FALSE(load_texts({rule}, masked_host)->wants_masks());
    EXPECT_EQ(load_texts({rule}, masked_host)->default_mask.text(), "leave");
    auto policy = load_texts({rule + "cpumask = \"0\"\nexpires = \"2027-01-15\"\n"}, masked_host);
    EXPECT_TRUE(policy->wants_masks());
    policy->expire(1'800'100'800);
    EXPECT_FALSE(policy->wants_masks());
}

// The CPUs of a mask count where it is in force.
TEST(PolicyMasks, CpusThatTheHostDoesNotHaveOrIsolatesAreRefused) {
    const std::string of_all = "default_mask.cpumask = ", rule = "[[workqueue]]\nmatch = \"a\"\ncpumask = ";
    const std::string host = "[[host]]\nname = \"a\"\nwhen.hostname = ";
    const std::pair<std::vector<std::string>, const char*> cases[] = {
        {{of_all + "3"}, ""},  // CPU 3
        {{of_all + "\"0-9\""}, "0.toml:1:24: cpumask has CPUs 8-9, which this host does not have (0-7)"},
        {{"", rule + "\"8\""}, "1.toml:3:11: cpumask has CPUs 8, which this host does not have (0-7)"},
        {{rule + "\"3-6\""}, "0.toml:3:11: cpumask has isolated CPUs 4-5 (isolcpus=, nohz_full=)"},
        {{host + "\"db-*\"\nworkqueue = [{ match = \"a\", cpumask = \"9\" }]"}, ""},
        {{host + "\"web-*\"\nworkqueue = [{ match = \"a\", cpumask = \"9\" }]"},
         "0.toml:4:39: cpumask has CPUs 9"},
        {{host + "\"db-*\"\n" + of_all + "\"\""}, "0.toml:4:24: cpumask must be a list of CPUs"},
        {{of_all + "\"9\"", of_all + "\"leave\""}, ""}};
    for (const auto& [texts, error] : cases) {
        const auto mistakes = mistakes_in_texts(texts, masked_host);
        EXPECT_EQ(mistakes.size(), *error == '\0' ? 0U : 1U) << texts[0];
        EXPECT_THAT(mistakes, testing::Each(StartsWith(error)));
    }
    EXPECT_TRUE(load_texts({of_all + "\"900\""}, {})) << "a host that is not known";
    EXPECT_TRUE(load_texts({of_all + "\"900\""}, [] { return HostFacts{}; }));
}

// ---- host tables

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
    facts.features = [] { return KernelFeatures{false, true}; };
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

TEST(PolicyHost, EachConditionHoldsOrSaysWhyNot) {
    const std::vector<std::array<std::string, 3>> cases = {
        {R"(arch = "aarch*")", R"(arch = "x86_64")", R"(arch is aarch64, not "x86_64")"},
        {R"(cpu_vendor = "ARM")", R"(cpu_vendor = "*Intel")", R"(cpu_vendor is ARM, not "*Intel")"},
        {R"(cpu_model = "Neoverse-V?")", R"(cpu_model = "*EPYC*")",
         R"(cpu_model is Grace A02 or Neoverse-V2, not "*EPYC*")"},
        {R"(llc_cores = ">=16")", R"(llc_cores = "<16")", R"(llc_cores is 72, not "<16")"},
        {R"(cores = 144)", R"(cores = "145")", R"(cores is 144, not "145")"},
        {R"(numa_nodes = "1-2")", R"(numa_nodes = 1)", R"(numa_nodes is 2, not "1")"},
        {R"(smt = false)", R"(smt = true)", R"(smt is false, not "true")"},
        {R"(kernel = "6.6-7.0")", R"(kernel = ">=7.1")", R"(kernel is 6.12.57-64k, not ">=7.1")"},
        {R"(hostname = "web-[0-9]")", R"(hostname = "db-*")", R"(hostname is web-7, not "db-*")"},
        {R"(virtual = false)", R"(virtual = true)", R"(virtual is false, not "true")"},
        {R"(has = "pwlocks")", R"(has = "cache_shard")", "has cache_shard is not true of this kernel"},
        {R"(canary = "100%")", R"(canary = "0%")", "canary is 55.9552% for this host, not below 0%"},
        {R"(canary = "55.97%")", R"(canary = "55.95%")",
         "canary is 55.9552% for this host, not below 55.95%"},
    };
    for (const auto& [holds, fails, why] : cases) {
        EXPECT_THAT(misses(holds), testing::IsEmpty()) << holds;
        EXPECT_THAT(misses(fails), ElementsAre(why)) << fails;
    }
    EXPECT_THAT(misses(R"(arch = "aarch64", cores = "<8", smt = true)"), testing::SizeIs(2))
        << "all must hold";
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
    EXPECT_THAT(misses("canary = \"100%\"", {}),
                ElementsAre("canary is not known here: there is no machine id"));
}

TEST(PolicyHost, AFeatureIsOneThatStatusLists) {
    for (const NamedFeature& feature : kFeatures) {
        HostFacts facts;
        const std::string when = "has = \"" + std::string(feature.name) + "\"";
        const std::string unknown = "has " + std::string(feature.name) + " is not known here";
        EXPECT_THAT(misses(when, facts), ElementsAre(unknown));
        facts.features = [] { return KernelFeatures{}; };
        EXPECT_THAT(misses(when, facts), ElementsAre(unknown));
        facts.features = [&] {
            KernelFeatures features;
            features.*feature.value = true;
            return features;
        };
        EXPECT_THAT(misses(when, facts), testing::IsEmpty());
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
    EXPECT_THAT(matches(*policy), ElementsAre("c1", "c2", "a1", "a2", "drop-in", "main"));
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
    ASSERT_THAT(errors, testing::SizeIs(1));
    EXPECT_THAT(errors[0], StartsWith("1.toml:5:8: host \"one\" already exists ("));
    EXPECT_THAT(errors[0], testing::HasSubstr("0.toml:1)"));
}

TEST(PolicyHost, ValuesOfATableMustGoWithThoseOutsideOfTables) {
    const std::string window = host("arch = \"no\"", "a") + "judge = { window = \"30s\" }\n";
    EXPECT_TRUE(load_on({window}));
    EXPECT_THAT(mistakes_on_grace({window, "[judge]\nwindow = \"40s\"\nwashout = \"35s\"\n"}),
                ElementsAre(StartsWith(
                    "0.toml:4:20: washout must be less than window: it is 35s, and window is 30s")));
}

TEST(PolicyHost, ValuesOfMatchingTablesMustGoTogether) {
    const std::string washout = host("ARCH", "a") + "judge = { washout = \"1s\" }\n";
    const std::string window = host("ARCH", "b") + "judge = { window = \"600ms\" }\n";
    const auto on = [](std::string text, const std::string& arch) {
        return text.replace(text.find("ARCH"), 4, "arch = \"" + arch + "\"");
    };
    EXPECT_TRUE(load_on({on(washout, "aarch64"), on(window, "x86_64")}));
    EXPECT_THAT(mistakes_on_grace({on(washout, "aarch64"), on(window, "aarch64")}),
                ElementsAre(StartsWith("1.toml:4:20: washout must be less than window: it is 1s, and")));
}

}  // namespace
}  // namespace wq
