// SPDX-License-Identifier: LGPL-2.1-or-later
// Exports verdicts as a policy and reads it back, on a matching host and on others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <random>

#include "ctl/fleet/learned.h"
#include "ctl/machine.h"
#include "ctl/topology_source.h"
#include "drop_in_plan.h"
#include "policy/load_policy.h"
#include "run_command.h"
#include "targets/inventory.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

using test::CpuTree;
using test::File;
using test::planned_by;
using test::TempTree;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using enum Judgement;

constexpr std::int64_t kExportedAt = 4'102'444'800;  // 2100-01-01 00:00 UTC: its rules have not expired

HostFacts epyc() {
    HostFacts facts;
    facts.arch = "x86_64";
    facts.cpu_vendor = "AuthenticAMD";
    facts.cpu_models = {R"(AMD [EPYC]* 9?54 \ "96-Core")", "of SMBIOS"};
    facts.llc_cores = 8;
    facts.cores = 96;
    facts.numa_nodes = 2;
    facts.smt = true;
    facts.kernel = "6.12.57+deb13-amd64";
    facts.hostname = "secret-name";
    facts.machine_id = "0123456789abcdef0123456789abcdef";
    facts.is_virtual = false;
    return facts;
}

VerdictRecord record(const std::string& name, Judgement outcome, const std::string& candidate = "smt",
                     const std::string& baseline = "cache") {
    VerdictRecord r;
    r.key = test::key_of(class_of(name), "6.12", "8 CPUs", baseline, candidate);
    r.target = name;
    r.time = kExportedAt - 3600;
    r.outcome = outcome;
    r.standing = {"latency", 9, 4.5, -2, {-3.1, Effect::Interval{-5.2, -1.0}}};
    return r;
}

std::string exported(const std::vector<VerdictRecord>& records, const HostFacts& facts = epyc()) {
    return ctl::exported_policy(facts, {records, "6.12", "8 CPUs", kExportedAt});
}

Policy loaded(const std::string& text, const HostFacts& facts = epyc()) {
    return test::policy_of(text, facts);
}

TEST(ExportedPolicy, SetsWhatImprovedAndLeavesTheRest) {
    const Policy policy =
        loaded(exported({record("kcryptd-254:0-1", improved), record("writeback", regressed),
                         record("strict", improved, "system strict"),
                         record("loose", improved, "smt", "cache strict"), record("unsure", undecided)}));
    for (const auto& [name, plan] : std::map<std::string, std::string>{{"kcryptd-254:0-1", "set smt"},
                                                                       {"kcryptd-7:12-345", "set smt"},
                                                                       {"kcryptd-254:0-x", "leave"},
                                                                       {"kcryptd_io-254:0-1", "leave"},
                                                                       {"writeback", "leave"},
                                                                       {"strict", "set system strict"},
                                                                       {"loose", "set smt not strict"},
                                                                       {"unsure", "leave"},
                                                                       {"@default", "unmanaged"}})
        EXPECT_EQ(planned_by(policy, name), plan) << name;
}

TEST(ExportedPolicy, TellsTheMachineAndTheEvidence) {
    const std::string text = exported({record("kcryptd-254:0-1", improved), record("unsure", undecided)});
    for (const char* part :
         {"2100-01-01 00:00 UTC", "6.12.57+deb13-amd64", "AMD [EPYC]*", "8 CPUs",
          R"(
# kcryptd-254:0-1, 2099-12-31 23:00 UTC: smt against cache: improved, latency 3.1% better (1 to 5.2), 9 pairs
[[host.workqueue]]
)",
          "#   unsure: its last verdict is undecided: unsure, 2099-12-31 23:00 UTC: smt against cache"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(text, Not(HasSubstr("secret-name")));
    EXPECT_THAT(text, Not(HasSubstr(epyc().machine_id)));
}

TEST(ExportedPolicy, NamesWithGlobCharactersMatchThemselvesAlone) {
    for (const std::string name : {"a*b", "a?b", "a[x]b", "a\\b", "[!a]", "\"quoted\"", "tab\there"}) {
        const Policy policy = loaded(exported({record(name, improved)}));
        EXPECT_EQ(planned_by(policy, name), "set smt") << name;
        for (const char* other : {"axb", "ab", "a0b", "b", "anything"})
            EXPECT_EQ(planned_by(policy, other), "leave") << name << " against " << other;
    }
}

// Whichever classes there are, each name gets the lesson of its own class.
TEST(ExportedPolicy, OfTwoPatternsTheNarrowerComesFirst) {
    const Policy policy =
        loaded(exported({record("nvme0", regressed), record("nvme0-flush", improved, "system"),
                         record("nvme0-1", improved, "cpu")}));
    EXPECT_EQ(planned_by(policy, "nvme12"), "leave");
    EXPECT_EQ(planned_by(policy, "nvme12-flush"), "set system");
    EXPECT_EQ(planned_by(policy, "nvme12-34"), "set cpu");

    std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same sequence each time
    const auto below = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    for (int round = 0; round < 20; round++) {
        std::map<std::string, std::pair<std::string, std::string>> names;  // class -> (a name, its scope)
        for (int i = 0; i < 40; i++) {
            std::string name(1, 'a');
            for (unsigned n = below(6); n > 0; n--) name += "ab1-"[below(4)];
            names[class_of(name)] = {name, std::string(name_of(kAllScopes[below(6)]))};
        }
        std::vector<VerdictRecord> records;
        for (const auto& [kind, one] : names)
            records.push_back(record(one.first, improved, one.second, "cache strict"));
        std::shuffle(records.begin(), records.end(), random);
        const Policy shuffled = loaded(exported(records));
        for (const auto& [kind, one] : names)
            EXPECT_EQ(shuffled.rule_for(one.first)->wish.text(), one.second) << one.first;
    }
}

TEST(ExportedPolicy, IsForMachinesOfThisKindAlone) {
    const std::string text = exported({record("writeback", improved)});
    const struct {
        void (*change)(HostFacts& facts);
        std::string misses;
    } rows[] = {
        {[](auto&) {}, ""},
        {[](auto& f) { f.kernel = "6.12.90-1"; }, ""},
        {[](auto& f) { f.hostname = f.machine_id = ""; }, ""},
        {[](auto& f) { f.arch = "aarch64"; }, "arch"},
        {[](auto& f) { f.cpu_vendor = "Other"; }, "cpu_vendor"},
        {[](auto& f) { f.cpu_models = {R"(AMD E 9654 \ "96-Core")"}; }, "cpu_model"},
        {[](auto& f) { f.llc_cores = 7; }, "llc_cores"},
        {[](auto& f) { f.cores = 192; }, "cores"},
        {[](auto& f) { f.numa_nodes = 1; }, "numa_nodes"},
        {[](auto& f) { f.smt = false; }, "smt"},
        {[](auto& f) { f.is_virtual = true; }, "virtual"},
        {[](auto& f) { f.kernel = "6.11.57"; }, "kernel"},
        {[](auto& f) { f.kernel = "6.13.0"; }, "kernel"},
        {[](auto& f) { f.kernel = "7.12.1"; }, "kernel"},
        {[](auto& f) { f.kernel = "6.1.57"; }, "kernel"},
    };
    for (const auto& [change, misses] : rows) {
        HostFacts facts = epyc();
        change(facts);
        const auto found = loaded(text, facts).hosts.at(0).misses;
        ASSERT_EQ(found.size(), misses.empty() ? 0U : 1U) << misses;
        EXPECT_TRUE(misses.empty() || found[0].starts_with(misses + " is")) << misses;
    }
}

TEST(ExportedPolicy, WhatIsNotKnownIsNoConditionAndSaidToBeNone) {
    HostFacts facts = epyc();
    facts.cpu_models.clear();
    facts.is_virtual.reset();
    const std::string text = exported({record("writeback", improved)}, facts);
    EXPECT_THAT(text, HasSubstr("# cpu_model is not known, so there is no condition on it\n"));
    EXPECT_THAT(text, HasSubstr("# virtual is not known, so there is no condition on it\n"));
    EXPECT_TRUE(loaded(text, facts).hosts.at(0).matches());
    EXPECT_TRUE(loaded(text).hosts.at(0).matches());
    EXPECT_TRUE(loaded(exported({record("writeback", improved)}, {})).hosts.at(0).matches());
    facts = epyc();
    facts.cpu_models = {"bytes \xff\x01 of firmware"};
    EXPECT_THAT(exported({record("a", improved)}, facts), HasSubstr("# cpu_model is not known,"));
    EXPECT_TRUE(loaded(exported({record("a", improved)}, facts), facts).hosts.at(0).matches());
}

// The command, on a tree with verdicts of a daemon.
class ExportPolicy : public testing::Test {
  protected:
    ExportPolicy() { options_.root = tree_.root(); }

    void learn(const std::string& name, Judgement outcome, std::int64_t age = 60) {
        VerdictStore store(tree_.path("var/lib/wq-tuned/verdicts.log"));
        ASSERT_TRUE(store.read());
        VerdictRecord r = record(name, outcome);
        r.key.kernel = kernel_key(ctl::kernel_of(options_));
        r.key.topology = fingerprint(read_topology("live", tree_.root()).value());
        r.time = ::time(nullptr) - age;
        ASSERT_TRUE(test::keep(store, r));
    }
    [[nodiscard]] test::Ran run() const {
        return test::captured([&] { return ctl::export_policy(options_); });
    }
    TempTree tree_{test::cpu_tree(CpuTree{.cores = 4, .threads = 2}),
                   File("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n"),
                   File("proc/sys/kernel/arch", "x86_64\n"),
                   File("proc/cpuinfo", "vendor_id\t: GenuineIntel\nmodel name\t: A [CPU]\nflags\t: fpu\n")};
    ctl::Options options_;
};

constexpr const char* kDropIn = "etc/wq-tuned/wq-tuned.toml.d/50-learned.toml";

TEST_F(ExportPolicy, MatchesTheMachineThatLearnedAndSaysTheSameThere) {
    learn("kcryptd-254:0-1", improved);
    learn("writeback", regressed);
    learn("other", improved, -3600);  // made under a wrong clock
    const test::Ran outcome = run();
    ASSERT_EQ(outcome.code, ctl::kOk) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    for (const char* part :
         {"arch = \"x86_64\"\n", "cpu_vendor = \"GenuineIntel\"\n", R"(cpu_model = "A \\[CPU]")",
          R"(
llc_cores = 4
cores = 4
numa_nodes = 1
smt = true
virtual = false
kernel = "6.12"
)",
          "name = \"learned 1: arch x86_64, cpu_vendor GenuineIntel, llc_cores 4, ",
          "\n# No rule for these classes:\n",
          "#   other: its last verdict has a time in the future (wrong clock)"})
        EXPECT_THAT(outcome.out, HasSubstr(part));
    tree_.add(File(kDropIn, outcome.out));
    const auto policy = load_installed_policy(tree_.root(), {}, ctl::facts_of(options_));
    ASSERT_TRUE(policy) << policy.error()[0].underlined();
    EXPECT_THAT(policy->hosts.at(0).misses, IsEmpty());
    EXPECT_EQ(planned_by(*policy, "kcryptd-254:0-1"), "set smt");
    EXPECT_EQ(planned_by(*policy, "writeback"), "leave");
    EXPECT_EQ(planned_by(*policy, "other"), "leave");
    const auto rules = [](const std::string& text) { return text.substr(text.find("[daemon]")); };
    EXPECT_EQ(rules(run().out), rules(outcome.out)) << "the host's own policy must not change the export";

    ctl::Options elsewhere = options_;
    elsewhere.topology = "synthetic:l3:1 core:4 pu:2";
    const auto other = load_policy({tree_.path(kDropIn)}, ctl::facts_of(elsewhere));
    ASSERT_TRUE(other);
    EXPECT_THAT(other->rules, SizeIs(1)) << "the one for all workqueues";
}

}  // namespace
}  // namespace wq
