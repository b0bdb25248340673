// SPDX-License-Identifier: LGPL-2.1-or-later
// `wq-tunectl status --isolation` when parts of its data cannot be read.
#include "ctl/observe/isolation_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/options.h"
#include "fake_monitor.h"
#include "fake_profile.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::TempTree;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

class IsolationCommand : public testing::Test {
  protected:
    IsolationCommand() {
        tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
        tree_.write("sys/devices/system/cpu/nohz_full", "(null)\n");
        WorkSample first, second;
        first.workqueues = {workqueue(10, "mm_percpu_wq"), workqueue(20, "goes")};
        second.workqueues = {workqueue(10, "mm_percpu_wq"), workqueue(30, "kcryptd-254:0-1")};
        second.workqueues[1].unbound = true;
        statistics_.samples_ = {first, second};
        profile_.sample_->isolated = {{30, "kcryptd_crypt [dm_crypt]", 2, {}},
                                      {10, "vmstat_update", 40, {{true, 4, "", 25}, {false, 0, "bash", 15}}},
                                      {20, "its_work", 1, {}},
                                      {10, "only_queued", 0, {{true, 4, "", 1}}}};
    }

    struct Run {
        int code = 0;
        std::string out, err;
    };
    Run run(bool as_json) {
        CaptureStdout();
        CaptureStderr();
        Run got;
        got.code = isolation({0.02, as_json}, {Paths{tree_.root()}, statistics_, profile_});
        got.out = GetCapturedStdout();
        got.err = GetCapturedStderr();
        return got;
    }
    json found() {
        const auto got = run(true);
        EXPECT_EQ(got.code, kOk);
        EXPECT_EQ(got.err, "");
        return json::parse(got.out);
    }

    TempTree tree_;
    FakeMonitor statistics_;
    FakeProfile profile_;
};

TEST_F(IsolationCommand, CountsWorkWithItsOrigin) {
    const json all = found();
    EXPECT_EQ(profile_.isolated_.list(), "4-5");
    EXPECT_EQ(all.at("cpus"), "4-5");
    EXPECT_EQ(all.at("isolcpus"), "4-5");
    EXPECT_EQ(all.at("nohz_full"), "");
    EXPECT_EQ(all.at("partitions"), json::array());
    EXPECT_EQ(all.at("missing"), json::array());
    EXPECT_EQ(all.at("work_lost"), 0);
    EXPECT_GE(all.at("work_seconds"), 0);
    ASSERT_THAT(all.at("work"), SizeIs(3)) << "what was only queued there did not run there";
    EXPECT_EQ(all.at("work")[0], json({{"workqueue", "mm_percpu_wq"},
                                       {"kind", "per-cpu"},
                                       {"function", "vmstat_update"},
                                       {"items", 40},
                                       {"origins",
                                        {{{"timer", true}, {"cpu", 4}, {"task", nullptr}, {"items", 25}},
                                         {{"timer", false}, {"cpu", 0}, {"task", "bash"}, {"items", 15}}}}}));
    EXPECT_EQ(all.at("work")[1].at("kind"), "unbound");
    EXPECT_EQ(all.at("work")[2].at("workqueue"), "goes") << "it was there when the look began";
}

TEST_F(IsolationCommand, PrintsTheCpusTheWorkAndASum) {
    const auto got = run(false);
    EXPECT_EQ(got.code, kOk);
    EXPECT_THAT(got.out, StartsWith("ISOLATED BY  CPUS  CGROUP\nisolcpus     4-5   -\n\n"
                                    "40 items of vmstat_update of mm_percpu_wq (per-CPU) on isolated CPUs "
                                    "4-5\n    25 queued by a timer on CPU 4\n"
                                    "    15 queued on CPU 0, where bash ran\n\n2 items of "));
    EXPECT_THAT(got.out, HasSubstr("\n\n43 items started on isolated CPUs 4-5 in "));
}

TEST_F(IsolationCommand, SaysWhatWasNotSeen) {
    profile_.sample_->lost_items = 7;
    profile_.samples_ = false;
    profile_.limits_ = "this kernel refuses fentry";
    statistics_.attached_ = fail("no iterators");
    const json all = found();
    EXPECT_EQ(all.at("work_lost"), 7);
    EXPECT_EQ(all.at("work")[0].at("workqueue"), "an unknown workqueue");
    EXPECT_TRUE(all.at("work")[0].at("kind").is_null());
    EXPECT_EQ(all.at("missing"), json({"the names of workqueues: no iterators",
                                       "which work a timer queued: this kernel refuses fentry"}));
    const auto text = run(false).out;
    EXPECT_THAT(text, HasSubstr("50 items started on isolated CPUs 4-5 in "));
    EXPECT_THAT(text, HasSubstr(" s.\nThere was no room for 7 of them.\n"
                                "Not seen: the names of workqueues: no iterators\n"));
    profile_.sample_ = ProfileSample{};
    EXPECT_THAT(run(false).out, HasSubstr("-\n\nNo work item started on isolated CPUs 4-5 in "));
}

TEST_F(IsolationCommand, WatchesPartitionsTooAndAttachesNothingWhereNoCpuIsIsolated) {
    tree_.write("sys/devices/system/cpu/isolated", "\n");
    profile_.attached_ = fail("BPF is denied");
    const json none = found();
    EXPECT_EQ(none.at("cpus"), "");
    EXPECT_EQ(none.at("work"), json::array());
    EXPECT_EQ(statistics_.looks_, 0U);
    EXPECT_THAT(run(false).out, StartsWith("No CPU is isolated: "));
    tree_.write("sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n");
    tree_.write("sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3\n");
    const auto got = run(true);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(got.err, "wq-tunectl: work on isolated CPUs cannot be seen: BPF is denied\n");
    profile_.attached_ = Status{};
    EXPECT_EQ(found().at("cpus"), "2-3");
    EXPECT_EQ(profile_.isolated_.list(), "2-3");
}

}  // namespace
}  // namespace wq::ctl
