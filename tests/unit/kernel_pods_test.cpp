// SPDX-License-Identifier: LGPL-2.1-or-later
// Plans with the actual pods of the kernel.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ctl/machine.h"
#include "ctl/render/page.h"
#include "fake_machine.h"
#include "machine/kernel_info.h"
#include "plan/pods.h"
#include "read_tree.h"
#include "service/status.h"

namespace wq {
namespace {

using nlohmann::json;
using test::kernel_72;
using test::lists;
using test::machine;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- kernel pods

const Topology kTwoSockets = machine({.sockets = 2, .cores = 4, .threads = 2});

std::vector<KernelPod> pods(const std::vector<std::string>& lists) {
    std::vector<KernelPod> out;
    for (const std::string& list : lists) out.push_back({CpuSet::parse_list(list).value(), -1});
    return out;
}

// The pods of the model for KERNEL.
KernelPods all_of(const KernelInfo& kernel, const Topology& topology) {
    KernelPods all;
    for (const Scope scope : kernel.scopes)
        for (const CpuSet& pod : pods_of(scope, topology, 8)) all[scope].push_back({pod, -1});
    return all;
}

// The pods of 7.2 on two sockets booted with nosmt: the second threads, offline at boot, share one pod of
// `cache`, and each has its own pod of `smt`.
KernelInfo booted_without_smt() {
    KernelInfo kernel = kernel_72();
    kernel.cpus_held_back = "nosmt";
    KernelPods all = all_of(kernel, kTwoSockets);
    all[Scope::cache] = pods({"0-3", "4-7", "8-15"});
    all[Scope::cache_shard] = all[Scope::cache];
    all[Scope::smt] = all[Scope::cpu];
    kernel.pods = all;
    return kernel;
}

PlanLine plan(const Topology& topology, const KernelInfo& kernel) {
    const Policy policy = test::rule_for_all();
    const std::string unknown = why_pods_unknown(topology, topology.online, kernel, 8);
    return make_plan(
               {topology, kernel, policy, {test::unbound(topology, kernel.default_scope())}, unknown, 8})
        .at(0);
}

std::vector<std::string> candidates(const PlanLine& line) {
    std::vector<std::string> out;
    for (const Candidate& c : line.candidates)
        out.push_back(std::string(name_of(c.scope)) + " " + std::to_string(c.pools));
    return out;
}

TEST(KernelPods, StandInForTheModelIfTheyHaveAnOnlineCpu) {
    const KernelInfo kernel = booted_without_smt();
    EXPECT_THAT(lists(pods_in(kernel, Scope::cache, kTwoSockets, 8)), ElementsAre("0-3", "4-7", "8-15"));
    EXPECT_THAT(lists(pods_in(kernel_72(), Scope::cache, kTwoSockets, 8)),
                ElementsAre("0-3,8-11", "4-7,12-15"));
    EXPECT_THAT(lists(pods_in(kernel, Scope::cache, test::without(kTwoSockets, "4-15"), 8)),
                ElementsAre("0-3"));
}

TEST(KernelPods, AreComparedWithTheModel) {
    EXPECT_THAT(unlike_model(booted_without_smt(), kTwoSockets),
                ElementsAre(Scope::smt, Scope::cache_shard, Scope::cache));
    EXPECT_THAT(unlike_model(booted_without_smt(), test::without(kTwoSockets, "8-15")), testing::IsEmpty())
        << "of the CPUs that are online the model is right";
    EXPECT_THAT(unlike_model(kernel_72(), kTwoSockets), testing::IsEmpty()) << "nothing was read";
}

TEST(KernelPods, MakeAPlanWhereTheModelHasNone) {
    KernelInfo kernel = booted_without_smt();
    Topology held_back = test::without(kTwoSockets, "8-15");
    held_back.present = kTwoSockets.online;
    const PlanLine line = plan(held_back, kernel);
    EXPECT_EQ(line.finding, Finding::in_place) << line.reason;
    EXPECT_THAT(candidates(line), ElementsAre("system 1", "numa 2", "smt 8"));
    kernel.pods.reset();
    EXPECT_EQ(plan(held_back, kernel).finding, Finding::in_place) << "wherever 8-15 are";
    EXPECT_EQ(plan(kTwoSockets, kernel).finding, Finding::pods_unknown);
}

TEST(KernelPods, AreTheLlcsToo) {
    const KernelInfo kernel = booted_without_smt();
    const PlanLine line = plan(kTwoSockets, kernel);
    EXPECT_THAT(candidates(line), ElementsAre("system 1", "numa 2", "cache 3", "smt 16"));
    EXPECT_EQ(line.planned, Scope::cache_shard) << line.reason;
    EXPECT_EQ(line.action, Action::none);
    EXPECT_THAT(line.reason, HasSubstr("`numa` crosses LLCs"));

    Topology shown;
    shown.llcs = llcs_in(kernel, kTwoSockets);
    EXPECT_THAT(test::llcs(shown), ElementsAre("0-3", "4-7", "8-15"));
    const json topology(ctl::topology_json(kTwoSockets, kernel, 8));
    EXPECT_EQ(topology["llcs"][2]["cpus"], "8-15");
    EXPECT_EQ(topology["llcs"][2]["numa_node"], 0);
}

// Ampere Altra: in sysfs every core has its own cache, but the kernel makes LLCs of two cores.
TEST(KernelPods, AreLlcsWhereSysfsKnowsOfNone) {
    Topology altra = machine({.cores = 16});
    altra.llcs.clear();
    for (const CpuSet& core : altra.cores) altra.llcs.push_back({core, 0});
    altra.llc_unknown = "nobody tells";
    KernelInfo kernel = kernel_72();
    EXPECT_EQ(plan(altra, kernel).reason, "pods unknown: nobody tells");
    KernelPods all = all_of(kernel, altra);
    all[Scope::cache] = all[Scope::cache_shard] =
        pods({"0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"});
    kernel.pods = all;
    const PlanLine line = plan(altra, kernel);
    EXPECT_EQ(line.finding, Finding::in_place) << line.reason;
    EXPECT_EQ(line.planned, Scope::cache_shard);
    EXPECT_EQ(json(ctl::topology_json(altra, kernel, 8))["llcs"].size(), 8U);
    EXPECT_FALSE(json(ctl::topology_json(altra, kernel, 8)).contains("llcs_unknown"));
    EXPECT_EQ(json(ctl::topology_json(altra, kernel_72(), 8))["llcs_unknown"], "nobody tells");
}

// With `--shard-size`: our LLC rule finds one LLC, but the kernel has two.
TEST(KernelPods, OfAnotherShardSizeAreOfTheKernelsLlcs) {
    const Topology now = machine({.cores = 8});
    KernelInfo kernel = kernel_72();
    KernelPods all = all_of(kernel, now);
    all[Scope::cache] = pods({"0-3", "4-7"});
    all.erase(Scope::cache_shard);
    kernel.pods = all;
    EXPECT_THAT(lists(pods_in(kernel, Scope::cache_shard, now, 2)), ElementsAre("0-1", "2-3", "4-5", "6-7"));
    EXPECT_THAT(unlike_model(kernel, now), ElementsAre(Scope::cache)) << "the kernel has no such shards";

    Topology doubtful = now;
    doubtful.llc_unknown = "nobody knows";
    EXPECT_EQ(why_pods_unknown(doubtful, now.online, kernel, 8), "") << "its LLCs are known";
    kernel.cpus_held_back = "maxcpus=6";
    EXPECT_THAT(why_pods_unknown(now, now.online, kernel, 8), HasSubstr("maxcpus=6"))
        << "shards depend on what was offline at boot";
}

TEST(KernelPods, TellMachinesApart) {
    const KernelInfo quirk = booted_without_smt();
    KernelInfo usual = quirk;
    usual.pods.reset();
    EXPECT_EQ(machine_fingerprint(usual, kTwoSockets), fingerprint(kTwoSockets));
    EXPECT_NE(machine_fingerprint(quirk, kTwoSockets), fingerprint(kTwoSockets))
        << "a verdict on other pods is none on these";
    const Topology now = test::without(kTwoSockets, "8-15");
    EXPECT_EQ(machine_fingerprint(quirk, now), fingerprint(now)) << "these are as the model has them";
    EXPECT_NE(machine_fingerprint(kernel_72(16), kTwoSockets), fingerprint(kTwoSockets))
        << "booted with another size of shards";
}

TEST(KernelPods, DoNotCureATopologyInDoubt) {
    Topology doubtful = kTwoSockets;
    doubtful.warnings = {"CPU 3: garbage"};
    EXPECT_THAT(why_pods_unknown(doubtful, doubtful.online, booted_without_smt(), 8), HasSubstr("in doubt"));
}

TEST(KernelPods, AreShownWhereTheyDiffer) {
    const KernelInfo kernel = booted_without_smt();
    const json shown = pods_json(kernel, kTwoSockets);
    EXPECT_EQ(shown["source"], "kernel");
    EXPECT_EQ(shown["why"], nullptr);
    EXPECT_EQ(shown["differ"].size(), 3U);
    EXPECT_EQ(shown["differ"]["cache"], json({"0-3", "4-7", "8-15"}));
    EXPECT_EQ(json(ctl::topology_json(kTwoSockets, kernel, 8))["pods"], shown);
    EXPECT_THAT(
        ctl::topology_shown(kTwoSockets, kernel, 8).text(),
        HasSubstr("The kernel's pods of cache differ from those computed from sysfs. The kernel has 3 "
                  "pods: 0-3  4-7  8-15\n"));
}

TEST(KernelPods, ThatWereNotReadSayWhy) {
    KernelInfo kernel = test::kernel_612();
    EXPECT_EQ(pods_json(kernel, kTwoSockets),
              json::parse(R"({"source": "model", "why": null, "differ": {}})"));
    kernel.pods_unread = "BPF is denied";
    EXPECT_EQ(pods_json(kernel, kTwoSockets)["why"], "BPF is denied");
    EXPECT_THAT(ctl::topology_shown(kTwoSockets, kernel, 8).text(),
                HasSubstr("Computed from sysfs; BPF is denied\n"));
}

// ---- pods file

TEST(PodsFile, HoldsThePodsOrWhyThereAreNone) {
    test::TempTree tree;
    const std::string path = tree.path("pods");
    EXPECT_FALSE(find_pods(path)) << "absent";
    ASSERT_TRUE(leave_pods(path, fail("lockdown", 1)));
    EXPECT_EQ(find_pods(path).value().error().text, "lockdown");
    const KernelPods pods{{Scope::smt, {{CpuSet::range(0, 1), 0}, {CpuSet::range(2, 3), 1}}},
                          {Scope::system, {{CpuSet::range(0, 3), -1}}}};
    ASSERT_TRUE(leave_pods(path, pods));
    EXPECT_EQ(find_pods(path).value().value(), pods);
    ASSERT_TRUE(leave_pods(path, fail("no memory")));
    EXPECT_EQ(find_pods(path).value().value(), pods) << "kept where they cannot be read again";
    const KernelPods others{{Scope::system, {{CpuSet{0, 1, 2}, -1}}}};
    ASSERT_TRUE(leave_pods(path, others));
    EXPECT_EQ(find_pods(path).value().value(), others) << "pods that were read replace pods";
    tree.write("pods", "cache");
    ASSERT_TRUE(leave_pods(path, fail("no memory")));
    EXPECT_EQ(find_pods(path).value().error().text, "no memory") << "a broken file is not kept";
}

TEST(PodsFile, IsNotBelievedWhereItIsBroken) {
    for (const char* text : {"", "end\n", "cache 0 0-3\n", "cache 0\nend\n", "cache x 0\nend\n",
                             "cache 0 x\nend\n", "pool 0 0-3\nend\n", "{}"}) {
        test::TempTree tree;
        tree.write("pods", text);
        const auto found = find_pods(tree.path("pods"));
        ASSERT_TRUE(found) << text;
        EXPECT_FALSE(*found) << text;
    }
}

}  // namespace
}  // namespace wq
