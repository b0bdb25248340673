// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot` on a tree: how past trials change the advice, and for what there are alternatives.
#include <gmock/gmock.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "evidence/verdicts.h"
#include "fake_machine.h"
#include "machine/hwloc_topology.h"
#include "machine/kernel_info.h"
#include "targets/keys.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq {
namespace {

using nlohmann::json;
using test::cpu_tree;
using test::kernel_tree;
using test::TempTree;
using test::workqueue;
using testing::ElementsAre;
using testing::IsEmpty;

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
    void block_device(const std::string& name, const std::map<std::string, std::string>& files) {
        for (const auto& [file, text] : files) tree_.write("sys/block/" + name + "/" + file, text + "\n");
    }
    void nvme_tcp_parameter(const std::string& unbound) {
        tree_.write("sys/module/nvme_tcp/parameters/wq_unbound", unbound + "\n");
    }
    void open_workqueue(const std::string& name, bool per_cpu) {
        tree_.write("sys/devices/virtual/workqueue/" + name + "/per_cpu", per_cpu ? "1\n" : "0\n");
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

TEST_F(BootCommand, NamesNoAlternativesForWhatIsNotThere) {
    block_device("dm-0", {{"dm/uuid", "LVM-abc"}, {"dev", "254:0"}});
    tree_.write("sys/class/nvme/nvme0/transport", "pcie\n");
    EXPECT_THAT(ask()["alternatives"], IsEmpty());
}

TEST_F(BootCommand, KnowsAMappingWithoutAUuidByItsWorkqueue) {
    block_device("dm-10", {{"dm/name", "b"}, {"dev", "254:10"}});
    block_device("dm-2", {{"dm/name", "a"}, {"dev", "254:1"}});
    open_workqueue("kcryptd_io-254:1-7", true);
    open_workqueue("kcryptd-254:10-3", true);
    EXPECT_EQ(ask()["alternatives"][0]["devices"], json({"b"})) << "254:10 is not 254:1";
}

TEST_F(BootCommand, GoesByTheWorkqueueOfNvmeTcpNotByItsParameter) {
    const auto offered = [&] { return !ask()["alternatives"].empty(); };
    EXPECT_FALSE(offered());
    nvme_tcp_parameter("Y");
    EXPECT_FALSE(offered()) << "in effect";
    open_workqueue("nvme_tcp_wq", true);
    EXPECT_TRUE(offered()) << "written after the module was loaded";
    nvme_tcp_parameter("N");
    open_workqueue("nvme_tcp_wq", false);
    EXPECT_FALSE(offered());
}

}  // namespace
}  // namespace wq
