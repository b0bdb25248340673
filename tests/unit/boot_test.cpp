// SPDX-License-Identifier: LGPL-2.1-or-later
// Which kernel command line options are advised, for each machine, and by `plan --boot` on a tree.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/options.h"
#include "ctl/topology_source.h"
#include "evidence/verdicts.h"
#include "fake_machine.h"
#include "machine/kernel_info.h"
#include "plan/boot_advice.h"
#include "plan/plan.h"
#include "targets/inventory.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

using nlohmann::json;
using test::cpu_tree;
using test::default_target;
using test::fixed;
using test::kernel_612;
using test::kernel_72;
using test::kernel_tree;
using test::leave;
using test::machine;
using test::rule_for_all;
using test::TempTree;
using test::unbound;
using test::workqueue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// ---- boot advice

struct Machine {
    Topology topology;
    KernelInfo kernel = kernel_72();
    Policy policy = rule_for_all();
    std::optional<unsigned> size = {};
    std::string pods_unknown = {};
    std::set<std::string> on_old_pools = {};
    Scope now = Scope::cache_shard;  // effective scope of `default`
};

BootAdvice advice(const Machine& q) {
    return advise_boot({q.topology,
                        q.kernel,
                        q.policy,
                        {default_target(q.topology, q.now), unbound(q.topology, q.now, "kcryptd"),
                         unbound(q.topology, q.now, "writeback")},
                        q.pods_unknown,
                        q.size,
                        "rules.toml:3",
                        q.on_old_pools});
}

std::vector<std::string> options(const BootAdvice& advice) {
    std::vector<std::string> out;
    for (const BootOption& each : advice.options) out.push_back(each.option);
    return out;
}

// ---- shards

struct Row {
    const char* name;
    test::Shape shape;
    unsigned kernels;       // shard size of the running kernel
    unsigned asked;         // shard size of a rule; 0: none
    const char* option;     // advised option; "": none
    const char* rule = "";  // scope that a note suggests instead
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

class BootAdviceTable : public testing::TestWithParam<Row> {};

TEST_P(BootAdviceTable, AreAdvisedWhereNoScopeMakesThem) {
    const Row& row = GetParam();
    Machine q{machine(row.shape), kernel_72(row.kernels)};
    if (row.asked > 0) q.size = row.asked;
    const BootAdvice found = advice(q);
    EXPECT_EQ(fmt::format("{}", fmt::join(options(found), " ")), row.option);
    ASSERT_EQ(found.notes.size(), *row.rule == '\0' ? 0U : 1U);
    for (const std::string& note : found.notes)
        EXPECT_THAT(note, HasSubstr(fmt::format("scope = \"{}\"", row.rule)));
}

INSTANTIATE_TEST_SUITE_P(
    Machines, BootAdviceTable,
    testing::Values(
        // No advice on any machine if no rule asks for a size, or if the kernel already has it.
        Row{"nobody asks", {.sockets = 2, .cores = 14, .threads = 2}, 8, 0, ""},
        Row{"booted with another size, nobody asks", {.cores = 36}, 16, 0, ""},
        Row{"as asked for", {.cores = 36}, 16, 16, ""},
        // Sapphire Rapids with SNC: 14 cores per LLC. Shards of at most 8 cores: 7+7; of 4: 4+4+3+3; of 16:
        // one shard.
        Row{"14 cores by 4", {.sockets = 4, .cores = 14, .threads = 2}, 8, 4, "workqueue.cache_shard_size=4"},
        Row{"14 cores by 6", {.sockets = 4, .cores = 14, .threads = 2}, 8, 6, ""},
        Row{"14 cores by 16", {.sockets = 4, .cores = 14, .threads = 2}, 8, 16, "", "numa"},
        // (If several scopes make the same pools, the coarsest one is named, as in a plan.)
        // Zen 4: 8 cores per LLC, which are one shard of size 8.
        Row{"8 cores by 4", {.sockets = 4, .cores = 8, .threads = 2}, 8, 4, "workqueue.cache_shard_size=4"},
        Row{"8 cores by 16", {.sockets = 4, .cores = 8, .threads = 2}, 8, 16, ""},
        Row{"8 cores by 1", {.sockets = 4, .cores = 8, .threads = 2}, 8, 1, "", "smt"},
        Row{"8 cores without threads by 1", {.sockets = 4, .cores = 8}, 8, 1, "", "smt"},
        // Zen 1: 3 cores per LLC.
        Row{"3 cores by 4", {.sockets = 16, .cores = 3, .threads = 2}, 8, 4, ""},
        // Kunpeng: 32 cores per LLC.
        Row{"32 cores by 4", {.sockets = 4, .cores = 32}, 8, 4, "workqueue.cache_shard_size=4"},
        Row{"32 cores by 16", {.sockets = 4, .cores = 32}, 8, 16, "workqueue.cache_shard_size=16"},
        Row{"32 cores by 64", {.sockets = 4, .cores = 32}, 8, 64, "", "numa"},
        // GB10: 10 cores per LLC. One shard of size 8; 4+3+3 with size 4.
        Row{"10 cores by 4", {.sockets = 2, .cores = 10}, 8, 4, "workqueue.cache_shard_size=4"},
        Row{"10 cores by 16", {.sockets = 2, .cores = 10}, 8, 16, ""},
        // No cache files: every core is an LLC, and only another scope can make such pools.
        Row{"no LLCs by 4", {.sockets = 8, .cores = 1, .one_node = true}, 8, 4, ""},
        Row{"no LLCs by 2", {.sockets = 8, .cores = 1, .one_node = true}, 8, 2, "", "cache"}));

TEST(BootAdviceShards, AreForThoseThatArePlannedOrNamed) {
    Machine q{.topology = machine({.cores = 32}), .policy = rule_for_all(leave()), .size = 4};
    EXPECT_THAT(options(advice(q)), IsEmpty());
    q.policy = rule_for_all(fixed(Scope::numa));
    EXPECT_THAT(options(advice(q)), IsEmpty());
    q.policy = rule_for_all(fixed(Scope::cache_shard));
    q.topology = machine({.cores = 8});
    EXPECT_THAT(options(advice(q)), ElementsAre("workqueue.cache_shard_size=4"));
}

TEST(BootAdviceShards, AreNotToldWherePodsAreUnknown) {
    const BootAdvice found =
        advice({.topology = machine({.cores = 32}), .size = 4, .pods_unknown = "offline CPUs: 3"});
    EXPECT_THAT(options(found), IsEmpty());
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("offline CPUs: 3")));
}

TEST(BootAdviceShards, CannotBeHadFromAKernelWithoutThem) {
    Machine q{.topology = machine({.cores = 12, .threads = 2}), .kernel = kernel_612(), .now = Scope::cache};
    EXPECT_THAT(options(advice(q)), IsEmpty());
    EXPECT_THAT(advice(q).notes, ElementsAre(HasSubstr("on this kernel: it has no cache_shard")));
    q.topology = machine({.cores = 8, .threads = 2});
    EXPECT_THAT(advice(q).notes, IsEmpty());
    q.topology = machine({.cores = 12});
    q.kernel.scopes.clear();
    q.size = 4;
    EXPECT_THAT(options(advice(q)), IsEmpty());
    EXPECT_THAT(advice(q).notes, SizeIs(1));
}

// ---- the default scope

Policy managed(const ScopeWish& wish = {}) {
    Policy out = rule_for_all();
    out.default_scope = {true, wish, {"rules.toml", 20}};
    return out;
}

// 12 cores in one LLC and a kernel without shards: the plan is smt.
Machine twelve(const Policy& policy) {
    return {.topology = machine({.cores = 12, .threads = 2}),
            .kernel = kernel_612(),
            .policy = policy,
            .now = Scope::cache};
}

TEST(BootAdviceDefault, IsNeededWhereItCannotBeWritten) {
    Machine q{.topology = machine({.cores = 32}), .policy = managed(), .now = Scope::cache};
    EXPECT_THAT(options(advice(q)), IsEmpty());
    EXPECT_THAT(advice(q).notes, IsEmpty());
    q.kernel.default_writable = false;
    EXPECT_THAT(options(advice(q)), ElementsAre("workqueue.default_affinity_scope=cache_shard"));
    q.now = Scope::cache_shard;
    EXPECT_THAT(options(advice(q)), IsEmpty()) << "it is so already";
    q.now = Scope::cache;
    q.policy = rule_for_all();
    EXPECT_THAT(options(advice(q)), IsEmpty()) << "nobody manages it";
}

TEST(BootAdviceDefault, OfARuleWherePodsAreUnknown) {
    Machine q = twelve(managed(fixed(Scope::smt)));
    q.pods_unknown = "isolated CPUs: 4-5";
    const BootAdvice found = advice(q);
    ASSERT_THAT(options(found), ElementsAre("workqueue.default_affinity_scope=smt"));
    EXPECT_THAT(found.options[0].reason, HasSubstr("rules.toml:20"));
    EXPECT_THAT(found.options[0].reason, HasSubstr("isolated CPUs: 4-5"));
    q.now = Scope::smt;
    EXPECT_THAT(options(advice(q)), IsEmpty()) << "it is so already";
    q.kernel.scopes = {Scope::cache};
    q.now = Scope::cache;
    EXPECT_THAT(options(advice(q)), IsEmpty()) << "no boot option makes a scope";
}

TEST(BootAdviceDefault, IsNoGuessWherePodsAreUnknown) {
    Machine q = twelve(managed());
    q.pods_unknown = "isolated CPUs: 4-5";
    EXPECT_THAT(options(advice(q)), IsEmpty());
    EXPECT_THAT(advice(q).notes, ElementsAre(HasSubstr("cannot plan @default")));
}

TEST(BootAdviceDefault, LeavesTheAdministratorsWord) {
    Machine q = twelve(managed());
    q.kernel.default_on_cmdline = true;
    EXPECT_THAT(options(advice(q)), IsEmpty());
    EXPECT_THAT(advice(q).notes, testing::Contains(HasSubstr("without it @default (cache) would be smt")));
}

TEST(BootAdviceDefault, ReachesWorkThatStaysOnOldPools) {
    Machine q{.topology = machine({.cores = 32}), .on_old_pools = {"writeback"}, .now = Scope::cache};
    const BootAdvice found = advice(q);
    ASSERT_THAT(options(found), ElementsAre("workqueue.default_affinity_scope=cache_shard"));
    EXPECT_THAT(found.options[0].reason, HasSubstr("writeback: a comparison showed that its work stays"));
    q.on_old_pools = {"kcryptd", "writeback"};
    EXPECT_THAT(options(advice(q)), SizeIs(1));
    EXPECT_THAT(advice(q).options[0].reason,
                testing::AllOf(HasSubstr("kcryptd: "), HasSubstr("writeback: ")));
    q.now = Scope::cache_shard;
    EXPECT_THAT(options(advice(q)), IsEmpty()) << "it is where it is planned";
}

// Only workqueues on `default` follow the default.
TEST(BootAdviceDefault, DoesNotReachWhatHasAWordOfItsOwn) {
    const Topology topology = machine({.cores = 32});
    Workqueue target = unbound(topology, Scope::cache, "writeback");
    target.scope.word = "cache";
    const BootAdvice found =
        advise_boot({topology, kernel_72(), rule_for_all(), {target}, "", std::nullopt, "", {"writeback"}});
    EXPECT_THAT(options(found), IsEmpty());
}

TEST(BootAdviceDefault, CanBeOnlyOne) {
    Policy policy = rule_for_all();
    policy.rules.insert(policy.rules.begin(),
                        {{"kcryptd"}, fixed(Scope::smt), std::nullopt, {"rules.toml", 9}});
    const BootAdvice found = advice({.topology = machine({.cores = 32, .threads = 2}),
                                     .policy = policy,
                                     .on_old_pools = {"kcryptd", "writeback"},
                                     .now = Scope::cache});
    EXPECT_THAT(options(found), ElementsAre("workqueue.default_affinity_scope=smt"));
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("workqueue.default_affinity_scope=cache_shard")));
}

// ---- notes

TEST(BootNotes, AreMadeWhereTheirConditionHolds) {
    const CpuSet some{2, 3};
    const CpuSet none;
    const struct {
        BootFacts facts;
        const char* note;  // "": none
    } rows[] = {
        {{}, ""},
        {{"", some, none, true}, "per-CPU work of the isolated CPUs 2-3"},
        {{"pwlocks=1", some, none, true}, ""},
        {{"", none, none, true}, ""},
        {{"", some, none, false}, ""},
        {{"", some, some, false, true}, "nohz_full=2-3 turns workqueue.power_efficient on"},
        {{"", some, none, false, true}, ""},
        {{"", some, some, false, false}, ""},
        {{"", none, none, false, false, 10'000}, ""},
        {{"", none, none, false, false, 0}, "thresh_us is 0"},
        {{"", none, none, false, false, 10'666}, "is 10.7 ms (the kernel took this CPU for slow"},
        {{"", none, none, false, false, 40'000}, "is 40.0 ms (the kernel took this CPU for slow"},
        {{"workqueue.cpu_intensive_thresh_us=40000", none, none, false, false, 40'000},
         "by the command line"},
    };
    for (const auto& row : rows) {
        const auto notes = notes_on(row.facts);
        EXPECT_EQ(notes.size(), *row.note == '\0' ? 0U : 1U) << row.note;
        for (const std::string& note : notes) EXPECT_THAT(note, HasSubstr(row.note));
    }
}

// ---- boot command

class BootCommand : public testing::Test {
  protected:
    BootCommand() {
        tree_.add(cpu_tree({.cores = 12, .threads = 2}));
        tree_.write("etc/wq-tuned/wq-tuned.toml",
                    "[[workqueue]]\nmatch = \"*\"\nscope = \"auto\"\n[default_scope]\nmanage = false\n");
    }
    [[nodiscard]] json ask() const {
        ctl::Options options;
        options.root = tree_.root();
        options.json = options.boot = true;
        testing::internal::CaptureStdout();
        const int code = ctl::plan_boot(options);
        const json answer = json::parse(testing::internal::GetCapturedStdout());
        EXPECT_EQ(code, 0);
        return answer;
    }
    // The advised options.
    [[nodiscard]] std::vector<std::string> advised() const {
        const json answer = ask();
        std::vector<std::string> out;
        for (const json& one : answer["boot"]) out.push_back(one["option"]);
        return out;
    }
    void trial_ended(const std::string& reason, bool judged = true, const std::string& kernel = "",
                     const std::string& topology = "", std::int64_t age = 60) {
        VerdictStore store(tree_.path("var/lib/wq-tuned/verdicts.log"));
        ASSERT_TRUE(store.load());
        VerdictRecord record;
        record.key.kernel = kernel.empty() ? kernel_key(probe_kernel(Paths{tree_.root()})) : kernel;
        record.key.topology =
            topology.empty() ? fingerprint(read_topology("live", tree_.root()).value()) : topology;
        record.key.kind = class_of("writeback");
        record.time = ::time(nullptr) - age;
        record.target = "writeback";
        record.reason = reason;
        record.judged = judged;
        ASSERT_TRUE(test::keep(store, record));
    }

    TempTree tree_{kernel_tree({workqueue("writeback", {.cpumask = "ffffff"})}, "cache", "8", "ffffff")};
};

TEST_F(BootCommand, KnowsFromTrialsWhatStaysOnOldPools) {
    const auto advice = ElementsAre("workqueue.default_affinity_scope=cache_shard");
    trial_ended(kStuckReason);
    EXPECT_THAT(advised(), advice);
    trial_ended("CPUs came or went", false);
    EXPECT_THAT(advised(), advice) << "one that was cut off says nothing";
    trial_ended("");
    EXPECT_THAT(advised(), IsEmpty()) << "the latest counts";
}

TEST_F(BootCommand, GoesByNoTrialOfAnotherKernelOrTopologyAndByNoneThatIsOld) {
    trial_ended(kStuckReason, true, "6.6.1");
    trial_ended(kStuckReason, true, "", "another");
    trial_ended(kStuckReason, true, "", "", std::int64_t{31} * 24 * 3600);
    EXPECT_THAT(advised(), IsEmpty());
}

TEST_F(BootCommand, NotesWhatTheKernelsParametersAre) {
    EXPECT_THAT(ask()["notes"], IsEmpty());
    tree_.write("sys/devices/system/cpu/nohz_full", "2-3\n");
    tree_.write("sys/module/workqueue/parameters/power_efficient", "Y\n");
    tree_.write("sys/module/workqueue/parameters/cpu_intensive_thresh_us", "20000\n");
    const json notes = ask()["notes"];
    ASSERT_THAT(notes, SizeIs(2));
    EXPECT_THAT(notes[0].get<std::string>(), HasSubstr("nohz_full=2-3"));
    EXPECT_THAT(notes[1].get<std::string>(), HasSubstr("20.0 ms"));
}

}  // namespace
}  // namespace wq
