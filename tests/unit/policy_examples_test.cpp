// SPDX-License-Identifier: LGPL-2.1-or-later
// The drop-ins of conf/examples with the shipped policy, on the hosts for which they are made and on others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "policy/load_policy.h"

namespace wq {
namespace {

const std::string kConf = SOURCE_DIR "/conf/";

Policy with(const std::string& example, const HostFacts& facts) {
    const auto policy = load_policy({kConf + "wq-tuned.toml", kConf + "examples/" + example + ".toml"},
                                    [&] { return facts; });
    EXPECT_TRUE(policy) << policy.error()[0].underlined();
    return policy.value_or(Policy{});
}

HostFacts host(const std::string& arch, const std::string& vendor, const std::string& model,
               unsigned llc_cores, unsigned nodes) {
    HostFacts facts;
    facts.arch = arch;
    facts.cpu_vendor = vendor;
    facts.cpu_models = {model};
    facts.llc_cores = llc_cores;
    facts.numa_nodes = nodes;
    facts.kernel = "6.12.57";
    facts.is_virtual = false;
    return facts;
}

const HostFacts kGrace = host("aarch64", "ARM", "Neoverse-V2", 72, 2);
const HostFacts kEpyc = host("x86_64", "AuthenticAMD", "AMD EPYC 9654 96-Core Processor", 8, 2);
const HostFacts kXeon = host("x86_64", "GenuineIntel", "INTEL(R) XEON(R) 6972P", 32, 2);
const HostFacts kXeonSnc = host("x86_64", "GenuineIntel", "Intel(R) Xeon(R) Platinum 8480+", 14, 8);

TEST(PolicyExamples, DoWhatTheySay) {
    const HostFacts gold = host("x86_64", "GenuineIntel", "INTEL(R) XEON(R) GOLD 6548Y+", 16, 4);
    EXPECT_EQ(with("10-epyc", kEpyc).rule_for("writeback")->wish.candidates, std::vector{Scope::cache_shard});
    EXPECT_EQ(with("10-epyc", kEpyc).default_scope.wish.candidates, std::vector{Scope::cache_shard});
    EXPECT_TRUE(with("10-epyc", kXeon).rule_for("writeback")->wish.candidates.empty());
    for (const HostFacts& snc : {kXeonSnc, gold}) EXPECT_EQ(with("10-xeon-snc", snc).shard_size, 16U);
    for (const HostFacts& other : {kXeon, kEpyc, kGrace})
        EXPECT_EQ(with("10-xeon-snc", other).shard_size, 8U);
    EXPECT_EQ(with("90-realtime", kXeon).mode, Mode::observe);
    for (const char* example : {"90-realtime", "30-dm-crypt"})
        EXPECT_EQ(with(example, kXeon).rule_for("writeback")->wish.kind, ScopeWish::Kind::leave) << example;
    for (const char* name : {"kcryptd-254:0-1", "kcryptd_io-254:0-1"})
        EXPECT_EQ(with("30-dm-crypt", kXeon).rule_for(name)->wish.kind, ScopeWish::Kind::automatic);
    EXPECT_TRUE(with("30-nfs-server", kXeon).default_scope.manage);
    EXPECT_EQ(with("30-nfs-server", kXeon).default_scope.wish.text(), "plan");
    EXPECT_EQ(with("30-nfs-server", kEpyc).default_scope.wish.text(), "auto");
}

// Each example needs its own test (05-canary: in fleet_command_test.cpp). All also load together, on any
// host; 90-realtime overrides the others.
TEST(PolicyExamples, AllAreTestedAndGoTogether) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(kConf + "examples"))
        files.push_back(entry.path());
    std::ranges::sort(files);
    files.insert(files.begin(), kConf + "wq-tuned.toml");
    EXPECT_EQ(files.size(), 7U) << "an example without a test";
    for (const HostFacts& facts : {kGrace, kEpyc, kXeon, kXeonSnc, HostFacts{}}) {
        PolicyErrors warnings;
        const auto policy = load_policy(
            files, [&] { return facts; }, &warnings);
        ASSERT_TRUE(policy) << policy.error()[0].underlined();
        EXPECT_TRUE(warnings.empty()) << warnings[0].underlined();
        EXPECT_EQ(policy->mode, Mode::observe);
        EXPECT_FALSE(policy->default_scope.manage);
        for (const char* name : {"writeback", "kcryptd-254:0-1"})
            EXPECT_EQ(policy->rule_for(name)->wish.kind, ScopeWish::Kind::leave);
    }
}

}  // namespace
}  // namespace wq
