// SPDX-License-Identifier: LGPL-2.1-or-later
// `plan --boot` on a tree: who asks for a size, and what past trials have to say.
#include <gmock/gmock.h>

#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "fake_machine.h"
#include "judge/verdicts.h"
#include "kernel/hwloc_topology.h"
#include "temp_tree.h"

namespace wq {
namespace {

using nlohmann::json;
using test::cpu_tree;
using test::kernel_tree;
using test::TempTree;
using test::workqueue;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class BootCommand : public testing::Test {
  protected:
    BootCommand() {
        tree_.add(cpu_tree({.cores = 12, .threads = 2}));
        policy("");
    }
    void policy(const std::string& more) {
        tree_.write("etc/wq-tuned/wq-tuned.toml", "[[workqueue]]\nmatch = \"*\"\nscope = \"auto\"\n" + more +
                                                      "[default_scope]\nmanage = false\n");
    }
    [[nodiscard]] json ask(std::optional<unsigned> size = {}) const {
        ctl::Options options;
        options.root = tree_.root();
        options.json = options.boot = true;
        options.shard_size = size;
        testing::internal::CaptureStdout();
        const int code = ctl::plan_boot(options);
        const json answer = json::parse(testing::internal::GetCapturedStdout());
        EXPECT_EQ(code, 0);
        return answer;
    }
    void trial_ended(const std::string& reason, bool judged = true, const std::string& kernel = "6.12.107",
                     const std::string& topology = "", std::int64_t age = 60) {
        VerdictStore store(tree_.path("var/lib/wq-tuned/verdicts.json"));
        ASSERT_TRUE(store.load());
        VerdictRecord record;
        record.key.kernel = kernel;
        record.key.topology =
            topology.empty() ? fingerprint(read_topology("live", tree_.root()).value()) : topology;
        record.key.kind = class_of("writeback");
        record.time = ::time(nullptr) - age;
        record.target = "writeback";
        record.reason = reason;
        record.judged = judged;
        ASSERT_TRUE(store.add(record).save());
    }

    TempTree tree_{kernel_tree({workqueue("writeback", {.cpumask = "ffffff"})}, "cache", "8", "ffffff")};
};

TEST_F(BootCommand, AdvisesNothingThatNobodyAskedFor) {
    EXPECT_THAT(ask()["boot"], IsEmpty());
    EXPECT_THAT(ask()["notes"], IsEmpty());
    EXPECT_EQ(ask()["kernel"]["cache_shard_size"], 8);
}

TEST_F(BootCommand, NamesThePlaceInThePolicyThatAsks) {
    policy("[shard]\nsize = 4\n");
    const json answer = ask();
    ASSERT_THAT(answer["boot"], SizeIs(1));
    EXPECT_EQ(answer["boot"][0]["option"], "workqueue.cache_shard_size=4");
    EXPECT_THAT(answer["boot"][0]["reason"], HasSubstr("wq-tuned.toml:5)"));
}

TEST_F(BootCommand, TakesTheOptionBeforeThePolicy) {
    policy("[shard]\nsize = 4\n");
    EXPECT_EQ(ask(3)["boot"][0]["option"], "workqueue.cache_shard_size=3");
    EXPECT_THAT(ask(8)["boot"], IsEmpty());
}

TEST_F(BootCommand, KnowsFromTrialsWhatStaysOnOldPools) {
    trial_ended(kStuckReason);
    const json answer = ask();
    ASSERT_THAT(answer["boot"], SizeIs(1));
    EXPECT_EQ(answer["boot"][0]["option"], "workqueue.default_affinity_scope=cache_shard");
    trial_ended("CPUs came or went", false);
    EXPECT_THAT(ask()["boot"], SizeIs(1)) << "one that was cut off says nothing";
    trial_ended("");
    EXPECT_THAT(ask()["boot"], IsEmpty()) << "the latest counts";
}

TEST_F(BootCommand, GoesByNoTrialOfAnotherKernelOrTopologyAndByNoneThatIsOld) {
    trial_ended(kStuckReason, true, "6.6.1");
    trial_ended(kStuckReason, true, "6.12.107", "another");
    trial_ended(kStuckReason, true, "6.12.107", "", std::int64_t{31} * 24 * 3600);
    EXPECT_THAT(ask()["boot"], IsEmpty());
}

}  // namespace
}  // namespace wq
