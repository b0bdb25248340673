// SPDX-License-Identifier: LGPL-2.1-or-later
// `wq-tunectl diagnose` and `status --isolation` when parts of their data cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "ctl/observe/diagnosis.h"
#include "ctl/options.h"
#include "fake_look.h"
#include "fake_monitor.h"
#include "fake_profile.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::TempTree;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

Result<KernelDump> dump() {
    return test::dump_of_two_caches();
}
Result<KernelDump> no_dump() {
    return fail("BPF is denied");
}

class DiagnoseCommand : public testing::Test {
  public:
    DiagnoseCommand() { set_up(); }

    void set_up() {
        monitor_ = {};
        profile_ = {};
        dump_ = dump;
        tree_.write("sys/devices/system/cpu/isolated", "\n");
        tree_.write("sys/devices/system/cpu/online", "0-7\n");
        tree_.write("proc/103/comm", "kworker/u9:3+kcryptd-254:0-1\n");
        tree_.write("proc/103/stat",
                    "103 (kworker/u9:3+kcryptd-254:0-1) R 2 0 0 0 -1 69238880 0 0 0 0 0 41 0 0\n");
        tree_.write("proc/103/status", "Cpus_allowed_list:\t0-7\n");
        for (const double seconds : {0.0, 1.0}) {
            WorkSample sample;
            sample.seconds = seconds;
            sample.workqueues = {workqueue(10, "kcryptd-254:0-1")};
            sample.workqueues[0].unbound = sample.workqueues[0].in_sysfs = true;
            sample.workqueues[0].cpu_time_us = static_cast<std::uint64_t>(seconds * 500'000);
            monitor_.samples_.push_back(sample);
        }
        profile_.sample_->ran = {{10, "kcryptd_crypt [dm_crypt]", 103, "kworker/u9:3", 400'000'000, 0}};
    }

    test::Ran run(bool as_json) {
        return test::captured([&] {
            return diagnose(DiagnoseOptions{0.02, as_json}, {Paths{tree_.root()}, monitor_, profile_, dump_});
        });
    }
    json found() {
        const auto got = run(true);
        EXPECT_EQ(got.code, kOk);
        EXPECT_EQ(got.err, "");
        return json::parse(got.out);
    }

    TempTree tree_;
    FakeMonitor monitor_;
    FakeProfile profile_;
    Result<KernelDump> (*dump_)() = dump;
};

TEST_F(DiagnoseCommand, PutsTogetherWhatTheToolsKnow) {
    const json all = found();
    EXPECT_EQ(all.at("attributed"), "ticks");
    EXPECT_EQ(all.at("online"), 8);
    EXPECT_EQ(all.at("missing"), json::array());
    ASSERT_THAT(all.at("work"), SizeIs(1));
    EXPECT_EQ(all.at("work")[0].at("function"), "kcryptd_crypt [dm_crypt]");
    EXPECT_EQ(all.at("workqueues")[0].at("finer"), json({"smt"}));
    EXPECT_TRUE(monitor_.functions_);
    EXPECT_THAT(monitor_.names_, IsEmpty());
}

TEST_F(DiagnoseCommand, WatchesTheIsolatedCpus) {
    tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
    profile_.limits_ = "this kernel refuses fentry";
    profile_.sample_->isolated = {{10, "kcryptd_crypt [dm_crypt]", 3, {}}};
    const json all = found();
    EXPECT_EQ(all.at("isolated").at("cpus"), "4-5");
    EXPECT_EQ(all.at("isolated").at("work")[0].at("items"), 3);
    EXPECT_EQ(all.at("attributed"), "statistics") << "there are no samples of kworkers";
    EXPECT_THAT(all.at("missing"), SizeIs(1));
    EXPECT_EQ(profile_.isolated_.list(), "4-5");
}

// Each tool fails in turn: the others go on, and what is not seen is said.
TEST_F(DiagnoseCommand, GoesOnWithWhatIsLeft) {
    const std::string refused = "this kernel refuses fentry";
    const auto check = [&](const char* attributed, const std::vector<std::string>& missing, auto change) {
        set_up();
        change();
        const json all = found();
        SCOPED_TRACE(all.dump());
        EXPECT_EQ(all.at("attributed"), attributed);
        EXPECT_EQ(all.at("missing"), json(missing));
        ASSERT_EQ(all.at("work").size(), std::string(attributed) == "names" ? 0U : 1U)
            << "/proc has no new time";
        for (const json& work : all.at("work"))
            EXPECT_EQ(work.at("function").is_null(), std::string(attributed) == "statistics");
    };
    check("ticks", {"the wait for pool->lock"}, [&] { monitor_.limits_ = "the wait for pool->lock"; });
    check("statistics",
          {"which kworker runs which function: " + refused, "work on isolated CPUs: " + refused}, [&] {
              profile_.attached_ = fail(refused);
              tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
          });
    check("ticks", {"functions and waits: no"}, [&] { monitor_.attached_ = fail("no"); });
    check("names", {"functions, waits and all that the kernel counts of each workqueue: no more samples"},
          [&] {
              monitor_.attached_ = profile_.attached_ = fail("no");
              monitor_.samples_.clear();
              dump_ = no_dump;
          });
    check("ticks", {"pools and scopes: BPF is denied"}, [&] { dump_ = no_dump; });
    check("ticks",
          {"1 sample of kworkers: there was no room",
           "7 items that started on isolated CPUs: there was no room",
           "3 items: not timed (no room, or queued again before the start)"},
          [&] {
              profile_.sample_->lost_ticks = 1;
              profile_.sample_->lost_items = 7;
              monitor_.samples_[0].lost = 5;
              monitor_.samples_[1].lost = 8;
          });
    check("ticks", {}, [&] {  // it fails for a moment
        monitor_.samples_.insert(monitor_.samples_.begin() + 1, WorkSample{});
        monitor_.failures_ = {{1, EAGAIN}};
    });
    const std::string none = "what the kernel counts of each workqueue: no more samples";
    check("ticks", {none}, [&] { monitor_.samples_.pop_back(); });
    check("ticks", {none}, [&] { monitor_.samples_.clear(); });
}

TEST_F(DiagnoseCommand, FailsWhereNothingCanBeSeen) {
    monitor_.attached_ = fail("BPF is denied");
    monitor_.samples_.clear();
    tree_.remove("proc");
    const auto got = run(false);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(got.err, "wq-tunectl: nothing can be seen: no more samples, and /proc shows no kworkers\n");
}

TEST_F(DiagnoseCommand, ASignalEndsItEarlyWithWhatWasSeen) {
    // The signal is blocked here, so it is still pending when the look begins.
    sigset_t set, before;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    ::raise(SIGINT);
    const auto got = test::captured([&] {
        return diagnose(DiagnoseOptions{3600, true}, {Paths{tree_.root()}, monitor_, profile_, dump});
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(got.code, kOk);
    const json all = json::parse(got.out);
    EXPECT_LT(all.at("seconds"), 3600);
    EXPECT_THAT(all.at("work"), SizeIs(1));
}

// ---- status --isolation

class IsolationCommand : public testing::Test {
  protected:
    IsolationCommand() {
        tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
        tree_.write("sys/devices/system/cpu/nohz_full", "(null)\n");
        WorkSample first, second;
        first.workqueues = {workqueue(10, "mm_percpu_wq"), workqueue(20, "goes")};
        second.workqueues = {workqueue(10, "mm_percpu_wq"), workqueue(30, "kcryptd-254:0-1")};
        second.workqueues[1].unbound = true;
        monitor_.samples_ = {first, second};
        profile_.sample_->isolated = {{30, "kcryptd_crypt [dm_crypt]", 2, {}},
                                      {10, "vmstat_update", 40, {{true, 4, "", 25}, {false, 0, "bash", 15}}},
                                      {20, "its_work", 1, {}},
                                      {10, "only_queued", 0, {{true, 4, "", 1}}}};
    }

    test::Ran run(bool as_json) {
        return test::captured([&] {
            return isolation({0.02, as_json}, {Paths{tree_.root()}, monitor_, profile_});
        });
    }
    json found() {
        const auto got = run(true);
        EXPECT_EQ(got.code, kOk);
        EXPECT_EQ(got.err, "");
        return json::parse(got.out);
    }

    TempTree tree_;
    FakeMonitor monitor_;
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
    profile_.limits_ = "this kernel refuses fentry";
    monitor_.samples_.clear();
    const json all = found();
    EXPECT_EQ(all.at("work_lost"), 7);
    EXPECT_EQ(all.at("work")[0].at("workqueue"), "an unknown workqueue");
    EXPECT_TRUE(all.at("work")[0].at("kind").is_null());
    EXPECT_EQ(all.at("missing"), json({"the names of workqueues: no more samples",
                                       "which work a timer queued: this kernel refuses fentry"}));
    const auto text = run(false).out;
    EXPECT_THAT(text, HasSubstr("50 items started on isolated CPUs 4-5 in "));
    EXPECT_THAT(text, HasSubstr(" s.\nThere was no room for 7 of them.\n"
                                "Not seen: the names of workqueues: no more samples\n"));
    profile_.sample_ = ProfileSample{};
    EXPECT_THAT(run(false).out, HasSubstr("-\n\nNo work item started on isolated CPUs 4-5 in "));
}

TEST_F(IsolationCommand, WatchesPartitionsTooAndAttachesNothingWhereNoCpuIsIsolated) {
    tree_.write("sys/devices/system/cpu/isolated", "\n");
    profile_.attached_ = fail("BPF is denied");
    const json none = found();
    EXPECT_EQ(none.at("cpus"), "");
    EXPECT_EQ(none.at("work"), json::array());
    EXPECT_EQ(monitor_.looks_, 0U);
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
