// SPDX-License-Identifier: LGPL-2.1-or-later
#include "machine/save_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "ctl/commands/plan_command.h"
#include "ctl/machine.h"
#include "fake_machine.h"
#include "machine/hwloc_topology.h"

namespace wq {
namespace {

using test::cpu_tree;
using test::kernel_tree;
using test::TempTree;
using test::workqueue;
using testing::HasSubstr;

// The topology and the plan of the tree ROOT, as JSON.
std::string seen_in(const std::string& root) {
    ctl::Options options;
    options.topology = "fsroot:" + root;
    const auto machine = ctl::read_machine(options);
    if (!machine) return machine.error().text;
    nlohmann::json plan = nlohmann::json::array();
    for (const PlanLine& line : machine->plan()) plan.push_back(ctl::plan_json(*machine, line));
    auto topology = ctl::topology_json(machine->topology, machine->kernel, machine->shard_size);
    topology["source"] = "";
    return topology.dump(1) + ctl::kernel_json(machine->kernel).dump(1) + plan.dump(1);
}

TEST(SaveTree, GivesTheSameTopologyAndPlan) {
    const test::CpuTree machines[] = {
        {.sockets = 2, .cores = 6, .threads = 2, .arch = "x86_64", .vendor = "GenuineIntel"},
        {.cores = 8,
         .offline = "3",
         .extra_possible = 4,
         .l3 = false,
         .arch = "x86_64",
         .vendor = "AuthenticAMD"},
        {.sockets = 1, .cores = 8, .isolated = "2-3", .clusters = 2, .l2s = 2, .arch = "aarch64"}};
    for (const test::CpuTree& machine : machines) {
        TempTree tree{cpu_tree(machine)};
        for (const auto& entry : kernel_tree(
                 {workqueue("kcryptd"), workqueue("odd", {.max_active_mode = 0444})}, "cache_shard", "8"))
            tree.add(entry);
        tree.write("proc/cmdline", "quiet luks.key=secret maxcpus=64 nosmt\n");
        tree.write("proc/sys/kernel/osrelease", "7.2.13\n");
        tree.write("boot/config-7.2.13", "CONFIG_SMP=y\nCONFIG_SCHED_MC=y\nCONFIG_SECRET=y\n");
        const TempTree copy;
        const std::string dir = copy.path("new/tree");
        const auto saved = save_tree(Paths{tree.root()}, dir);
        ASSERT_TRUE(saved) << saved.error().text;
        EXPECT_EQ(seen_in(dir), seen_in(tree.root()));
        EXPECT_EQ(copy.read("new/tree/proc/cmdline"), "maxcpus=64 nosmt\n") << "others can be secret";
    }
}

TEST(SaveTree, RefusesAFolderThatIsNotEmpty) {
    const TempTree tree{cpu_tree({.cores = 2})};
    const TempTree copy{test::File("file"), test::Dir("empty"), test::Dir("full", {test::File("file")})};
    for (const char* taken : {"full", "file"}) {
        const auto saved = save_tree(Paths{tree.root()}, copy.path(taken));
        ASSERT_FALSE(saved) << taken;
        EXPECT_THAT(saved.error().text, HasSubstr("exists and is not an empty folder"));
    }
    EXPECT_TRUE(save_tree(Paths{tree.root()}, copy.path("empty")));
    EXPECT_TRUE(copy.exists("empty/sys/devices/system/cpu/cpu1/topology/thread_siblings"));
}

}  // namespace
}  // namespace wq
