// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <set>

#include "fake_bench.h"
#include "fake_counters.h"
#include "run_command.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::File;
using test::Ran;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<test::Entry> entries_of_tree() {
    auto out = test::kernel_tree({test::workqueue("kcryptd-254:70-2"), test::workqueue("writeback")});
    out.push_back(test::cpu_tree({.cores = 4, .threads = 2}));
    out.push_back(test::Dir("proc/1", {File("comm", "kworker/u16:0-events\n")}));
    out.push_back(File("proc/sys/kernel/osrelease", "6.12.107\n"));
    out.push_back(File("proc/sys/kernel/hostname", "secret-host\n"));
    return out;
}

constexpr const char* kLeft = "run/wq-tuned/lab.json";
constexpr const char* kBaseline = "run/wq-tuned/owned.json";
constexpr const char* kNotRestored =
    "settings or devices of an earlier ab, bench or comparison could not be restored or removed\n";

class BenchCommand : public testing::Test {
  protected:
    BenchCommand() { options_.settings = {.seconds = 1, .rounds = 8, .loads = {"write"}}; }

    int run_here() { return bench(options_, {{Paths{tree_.root()}, processes_, devices_}, fio_, counters_}); }
    Ran run() {
        return test::captured([&] { return run_here(); });
    }
    // Runs the command in a process that is killed in the middle.
    void run_killed() {
        const pid_t pid = ::fork();
        if (pid == 0) {
            (void)!::freopen("/dev/null", "w", stdout);
            (void)!::freopen("/dev/null", "w", stderr);
            (void)run_here();
            ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFSIGNALED(status)) << "it was not killed";
        EXPECT_TRUE(test::is_let_go(tree_.root())) << "its guardian does not end";
    }
    [[nodiscard]] json run_json() {
        options_.json = true;
        const Ran ran = run();
        EXPECT_EQ(ran.code, kOk) << ran.err;
        return json::parse(ran.out);
    }
    void expect_nothing_left(const std::string& when = "") const {
        for (const char* file : {"dev/crypt", "dev/ram", "dev/driver", kLeft})
            EXPECT_FALSE(tree_.exists(file)) << file << " " << when;
        EXPECT_THAT(test::saved_entries(tree_), testing::IsEmpty()) << when;
    }

    test::TempTree tree_{entries_of_tree()};
    test::FakeDevices devices_{tree_};
    lab::Processes processes_;
    test::FakeFio fio_{tree_, processes_};
    test::FakeCounters counters_;
    BenchOptions options_;
};

TEST_F(BenchCommand, RunsEachScopeOfTheKernelOnceARoundUnderEachLoadAfterAWarmUp) {
    options_.settings.rounds = 6;
    options_.settings.loads = {"write", "read"};
    const json result = run_json();
    ASSERT_EQ(fio_.runs.size(), 1U + 6 * 10);
    EXPECT_EQ(fio_.runs[0], "write cache");
    std::set<std::vector<std::string>> orders;
    for (auto at = fio_.runs.begin() + 1; at != fio_.runs.end(); at += 10) {
        std::vector<std::string> round(at, at + 10);
        orders.insert(round);
        std::ranges::sort(round);
        EXPECT_THAT(round,
                    ElementsAre("read cache", "read cpu", "read numa", "read smt", "read system",
                                "write cache", "write cpu", "write numa", "write smt", "write system"));
    }
    EXPECT_GT(orders.size(), 1U);
    EXPECT_EQ(fio_.settings.threads, 2U) << "one per four CPUs";
    EXPECT_EQ(result["rounds"], 6);
    expect_nothing_left();
}

// Reads are compared with reads; a control is never the best.
TEST_F(BenchCommand, JudgesEachLoadAsAbDoes) {
    fio_.mb_per_s = {{"write cache", 100}, {"write smt", 125}, {"write cpu", 80}, {"write system", 200}};
    options_.settings.loads = {"write", "read"};
    options_.settings.rounds = 9;
    const json result = run_json();
    EXPECT_EQ(result["best"], json({{"write", "smt"}, {"read", nullptr}}));
    const struct {
        const char *load, *scope;
        unsigned pools;
        json same;
        const char* verdict;
        json effect;
    } rows[] = {
        {"write", "cache", 1, nullptr, "", nullptr},     {"write", "system", 1, "cache", "improved", -50.0},
        {"write", "numa", 1, "cache", "undecided", 0.0}, {"write", "smt", 4, nullptr, "improved", -20.0},
        {"write", "cpu", 8, nullptr, "regressed", 25.0}, {"read", "cache", 1, nullptr, "", nullptr},
        {"read", "system", 1, "cache", "undecided", 0.0}};
    for (std::size_t i = 0; i < std::size(rows); i++) {
        const json& row = result["scopes"][i];
        EXPECT_EQ(row["load"], rows[i].load) << row;
        EXPECT_EQ(row["scope"], rows[i].scope) << row;
        EXPECT_EQ(row["pools"], rows[i].pools) << row;
        EXPECT_EQ(row["same_pods_as"], rows[i].same) << row;
        EXPECT_EQ(row["role"], rows[i].effect.is_null() ? "reference" : "candidate");
        EXPECT_EQ(row.value("verdict", ""), rows[i].verdict) << row;
        if (!rows[i].effect.is_null()) {
            EXPECT_NEAR(row["effect_percent"].get<double>(), rows[i].effect.get<double>(), 0.1);
        }
        EXPECT_EQ(row["runs"].size(), 9U);
    }
    EXPECT_EQ(result["host"]["kernel"], "6.12.107");
    EXPECT_EQ(result["host"]["llc_cores"], json::array({4}));
}

// A verdict requires an e-value of 40 with two candidates (seven equal pairs reach it); what makes the same
// pods as another is none.
TEST_F(BenchCommand, AlphaIsDividedAmongTheCandidates) {
    fio_.mb_per_s = {{"write smt", 125}};
    for (const auto& [rounds, verdict] : {std::pair{6U, "undecided"}, {7U, "improved"}}) {
        options_.settings.rounds = rounds;
        const json smt = run_json()["scopes"][3];
        EXPECT_EQ(smt["scope"], "smt");
        EXPECT_EQ(smt["verdict"], verdict) << smt["e_improved"];
    }
}

TEST_F(BenchCommand, CountsItsOwnWorkqueueInAWindowForEachRun) {
    counters_.completed = [](const auto&) { return 4000; };
    counters_.count = [](const auto&, unsigned) {
        WorkCount count{.pools = 4, .workers = 9};
        count.enqueued.resize(200);
        count.enqueued[64] = 100;
        return count;
    };
    json result = run_json();
    const json& median = result["scopes"][0]["median"];
    EXPECT_EQ(median["items_per_s"], 2000) << "in two seconds";
    EXPECT_EQ(median["pools"], 4);
    EXPECT_EQ(median["kworkers"], 9);
    EXPECT_GT(median["enqueue_p50_ns"].get<double>(), 0);
    EXPECT_LE(median["enqueue_p50_ns"].get<double>(), median["enqueue_p99_ns"].get<double>());
    EXPECT_TRUE(counters_.wanted.enqueue);
    EXPECT_FALSE(counters_.attached);
    const std::string name = test::FakeDevices::kWorkqueue;
    EXPECT_THAT(
        std::vector(counters_.asked.begin(), counters_.asked.begin() + 4),
        ElementsAre("attach " + name, "begin " + name + " 0", "pause " + name, "sample " + name + " 2"));
    EXPECT_EQ(std::ranges::count(counters_.asked, "sample " + name + " 2"), 1);
    EXPECT_EQ(result["missing"], "");

    counters_.lacks = "this kernel refuses fexit";
    counters_.count = [](const auto&, unsigned) { return WorkCount{}; };
    result = run_json();
    EXPECT_EQ(result["missing"], "this kernel refuses fexit");
    EXPECT_TRUE(result["scopes"][0]["median"]["enqueue_p99_ns"].is_null()) << "not 0";
    EXPECT_EQ(result["scopes"][0]["median"]["items_per_s"], 2000);
}

TEST_F(BenchCommand, WhatCannotBeCountedIsToldOnce) {
    counters_.attach_error = Error{EPERM, "bpf: Operation not permitted"};
    Ran ran = run();
    EXPECT_EQ(ran.code, kOk) << ran.err;
    EXPECT_THAT(
        ran.out,
        HasSubstr("Not seen: items, enqueue, pools, kworkers and CPU time: bpf: Operation not permitted"));
    EXPECT_THAT(ran.out, StartsWith("WRITE   ITEMS/S  P50  P90  P95  P99  POOLS  KW  MB/S  VERDICT\n"
                                    "cache   -        -    -    -    -    1      -   100   reference\n"));
    EXPECT_THAT(counters_.asked, ElementsAre("attach kcryptd-254:7-1")) << "it does not ask again";
    counters_.attach_error.reset();
    counters_.asked.clear();
    counters_.read_error = Error{EIO, "reading a window"};
    EXPECT_THAT(run().out, HasSubstr("CPU time: reading a window"));
    EXPECT_EQ(std::ranges::count(counters_.asked, "begin kcryptd-254:7-1 0"), 1);
}

TEST_F(BenchCommand, ATableForPeople) {
    fio_.mb_per_s = {{"write smt", 125}};
    const Ran ran = run();
    EXPECT_EQ(ran.code, kOk) << ran.err;
    EXPECT_THAT(ran.out,
                HasSubstr("\nsystem  -        -    -    -    -    1      -   100   same pods as cache\n"));
    EXPECT_THAT(ran.out, HasSubstr("\nsmt     -        -    -    -    -    4      -   125   20% better ("));
    EXPECT_THAT(ran.out, HasSubstr("write: smt against cache, this kernel's scope: 20% better"));
    EXPECT_THAT(ran.out, HasSubstr("8 CPUs, 4 cores, 1 LLC of 4 cores"));
    EXPECT_THAT(ran.out, HasSubstr("kernel 6.12.107"));
    EXPECT_THAT(ran.err, StartsWith("round 1 of 8\nround 2 of 8; write system no difference, write numa no "
                                    "difference, write smt 20% better, write cpu no difference\n"));
    const json result = run_json();
    EXPECT_EQ(result["best"]["write"], "smt");
    for (const std::string& text : {ran.out, result.dump()}) EXPECT_THAT(text, Not(HasSubstr("secret-host")));
}

TEST_F(BenchCommand, WhatWasThereBeforeIsKnownOrNothingIsMade) {
    tree_.add(File(kBaseline, "nonsense\n"));
    devices_.at_step = [](const std::string& step) { return Status(fail("made: " + step)); };
    const Ran ran = run();
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr(kNotRestored));
    EXPECT_THAT(ran.err, Not(HasSubstr("made: ")));
    EXPECT_EQ(tree_.read(kBaseline), "nonsense\n") << "kept for people to look at";
}

TEST_F(BenchCommand, AnErrorOrAKillAtAnyStepLeavesNothing) {
    for (const char* step : {"load driver", "load driver done", "make ram", "make ram done", "make crypt",
                             "make crypt done", "run 0", "run 2"})
        for (const bool kill : {false, true}) {
            const auto at = [&](const std::string& now) {
                if (now != step) return Status{};
                if (kill) ::raise(SIGKILL);
                return Status(fail("it broke", EIO));
            };
            devices_.at_step = at;
            fio_.at_run = [&](unsigned run) { return at("run " + std::to_string(run)); };
            fio_.runs.clear();
            if (kill) {
                run_killed();
            } else {
                const Ran ran = run();
                EXPECT_EQ(ran.code, kFailure) << step;
                EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: it broke\n")) << step;
                EXPECT_EQ(ran.out, "") << step;
            }
            expect_nothing_left(step);
        }
}

TEST_F(BenchCommand, ASignalEndsItWithTheRoundsThatCount) {
    fio_.at_run = [](unsigned run) {
        return run == 8 ? Status(fail("interrupted by SIGINT", EINTR)) : Status{};
    };
    const Ran ran = run();
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.out, HasSubstr("1 round of 1 s"));
    EXPECT_THAT(ran.out, HasSubstr("Ended early: interrupted by SIGINT"));
    expect_nothing_left();
}

TEST_F(BenchCommand, KilledWithItsGuardianTheNextOneRemovesWhatIsLeft) {
    fio_.at_run = [&](unsigned) {
        ::kill(processes_.guardian.pid(), SIGKILL);
        ::raise(SIGKILL);
        return Status{};
    };
    for (const bool restore : {true, false}) {
        run_killed();
        EXPECT_TRUE(tree_.exists("dev/crypt"));
        EXPECT_TRUE(tree_.exists(kLeft));
        EXPECT_THAT(tree_.read(kLeft), HasSubstr(test::FakeDevices::kWorkqueue));
        const auto keep = fio_.at_run;
        fio_.at_run = [](unsigned) { return Status{}; };
        options_.restore = restore;
        const Ran ran = run();
        EXPECT_EQ(ran.code, kOk) << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: wq-bench-"));
        EXPECT_THAT(ran.err, HasSubstr(": removed\n"));
        expect_nothing_left();
        options_.restore = false;
        fio_.at_run = keep;
    }
}

TEST_F(BenchCommand, WhatCannotBeRemovedStaysOnDisk) {
    fio_.at_run = [&](unsigned run) {
        if (run == 1) tree_.add(File("dev/busy"));
        return Status{};
    };
    Ran ran = run();
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("NOT REMOVED: "));
    EXPECT_THAT(ran.err, HasSubstr("bench --restore"));
    EXPECT_TRUE(tree_.exists("dev/ram")) << "below a device that is there";
    EXPECT_EQ(tree_.read(test::wq_path(test::FakeDevices::kWorkqueue)), "default\n");
    EXPECT_THAT(tree_.read(kLeft), Not(HasSubstr("affinity_scope")))
        << "it is back, though the device is there";
    EXPECT_TRUE(tree_.exists(kLeft));
    ran = run();
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr(kNotRestored));
    tree_.remove("dev/busy");
    options_.restore = true;
    EXPECT_EQ(run().code, kOk);
    expect_nothing_left();
}

TEST_F(BenchCommand, RefusedBeforeADeviceIsMade) {
    devices_.at_step = [](const std::string& step) { return Status(fail("made: " + step)); };
    {
        const auto daemon = take_lock(Paths{tree_.root()});
        EXPECT_EQ(run().err,
                  "wq-tunectl: wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first\n");
    }
    fio_.installed = fail("fio is not installed");
    EXPECT_EQ(run().err, "wq-tunectl: fio is not installed\n");
    options_.restore = true;
    EXPECT_EQ(run().code, kOk) << "it needs no fio";
    options_.restore = false;
    fio_.installed = {};
    tree_.remove("sys/module/workqueue");
    tree_.remove("sys/devices/virtual/workqueue");
    EXPECT_THAT(run().err, HasSubstr("has no affinity scopes"));
    expect_nothing_left();
}

TEST_F(BenchCommand, AKernelWithoutTheWorkqueueKeepsItsDriver) {
    tree_.add(File("dev/driver"));
    devices_.in_sysfs = false;
    EXPECT_THAT(run().err, HasSubstr("does not show the workqueue of dm-crypt in sysfs: 6.10"));
    EXPECT_TRUE(tree_.exists("dev/driver")) << "it was loaded before";
    tree_.remove("dev/driver");
    expect_nothing_left();
}

}  // namespace
}  // namespace wq::ctl
