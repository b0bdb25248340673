// SPDX-License-Identifier: LGPL-2.1-or-later
// `wq-tunectl diagnose` when parts of its data cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "ctl/observe/diagnosis.h"
#include "ctl/options.h"
#include "fake_look.h"
#include "fake_monitor.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::TempTree;
using testing::SizeIs;

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
            sample.ran = {{10, "kcryptd_crypt [dm_crypt]", 103, "kworker/u9:3", 400'000'000, 0}};
            monitor_.samples_.push_back(sample);
        }
    }

    test::Ran run(double seconds = 0.02) {
        return test::captured([&] {
            return diagnose(DiagnoseOptions{seconds, true}, {Paths{tree_.root()}, monitor_, dump_});
        });
    }
    json found() {
        const auto got = run();
        EXPECT_EQ(got.code, kOk);
        EXPECT_EQ(got.err, "");
        return json::parse(got.out);
    }

    TempTree tree_;
    FakeMonitor monitor_;
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
    EXPECT_TRUE(monitor_.functions_ && monitor_.kworkers_);
    EXPECT_TRUE(monitor_.asked_.empty());
}

TEST_F(DiagnoseCommand, WatchesTheIsolatedCpus) {
    tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
    monitor_.on_cpus_ = std::vector{workqueue(10, "events", 3)};
    const json all = found();
    EXPECT_EQ(all.at("isolated").at("cpus"), "4-5");
    EXPECT_EQ(all.at("isolated").at("work"), json::array()) << "nothing was added meanwhile";
    EXPECT_EQ(monitor_.asked_.list(), "4-5");
}

// Each part fails in turn: the others go on, and what is not seen is said.
TEST_F(DiagnoseCommand, GoesOnWithWhatIsLeft) {
    const auto check = [&](const char* attributed, const std::vector<std::string>& missing, auto change) {
        set_up();
        change();
        const json all = found();
        SCOPED_TRACE(all.dump());
        EXPECT_EQ(all.at("attributed"), attributed);
        EXPECT_EQ(all.at("missing"), json(missing));
        ASSERT_EQ(all.at("work").size(), 1U);
        EXPECT_EQ(all.at("work")[0].at("function").is_null(), std::string(attributed) == "statistics");
    };
    check("ticks", {"the wait for pool->lock"}, [&] { monitor_.limits_ = "the wait for pool->lock"; });
    check("statistics", {"functions, waits and kworkers: no"}, [&] {
        monitor_.attached_ = fail("no");
        for (auto& one : monitor_.samples_) one.ran.reset();
    });
    check("ticks", {"pools and scopes: BPF is denied"}, [&] { dump_ = no_dump; });
    check("ticks",
          {"1 sample of kworkers: there was no room",
           "3 items: not timed (no room, or queued again before the start)"},
          [&] {
              monitor_.samples_[1].lost_ticks = 1;
              monitor_.samples_[0].lost = 5;
              monitor_.samples_[1].lost = 8;
          });
    check("ticks", {}, [&] {  // it fails for a moment
        monitor_.samples_.insert(monitor_.samples_.begin() + 1, WorkSample{});
        monitor_.failures_ = {{1, EAGAIN}};
    });
    const std::string refused = "work on isolated CPUs: no list";
    check("ticks", {refused, refused}, [&] {
        tree_.write("sys/devices/system/cpu/isolated", "4-5\n");
        monitor_.on_cpus_ = fail("no list");
    });
}

TEST_F(DiagnoseCommand, FailsWhereTheWorkqueuesCannotBeListed) {
    for (const std::size_t samples : {0U, 1U}) {
        set_up();
        monitor_.samples_.resize(samples);
        const auto got = run();
        EXPECT_EQ(got.code, kFailure);
        EXPECT_EQ(got.out, "");
        EXPECT_EQ(got.err, "wq-tunectl: no more samples\n");
    }
}

TEST_F(DiagnoseCommand, ASignalEndsItEarlyWithWhatWasSeen) {
    // The signal is blocked here, so it is still pending when the look begins.
    sigset_t set, before;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    ::raise(SIGINT);
    const auto got = run(3600);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(got.code, kOk);
    const json all = json::parse(got.out);
    EXPECT_LT(all.at("seconds"), 3600);
    EXPECT_THAT(all.at("work"), SizeIs(1));
}

}  // namespace
}  // namespace wq::ctl
