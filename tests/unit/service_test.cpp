// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon itself, as a child process, on a tree that stands for the machine.
#include "service/service.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "service_rig.h"

namespace wq {
namespace {

using test::Daemon;
using test::OnChange;
using test::ServiceTest;
using test::workqueue;
using test::wq_path;
using testing::IsEmpty;

TEST_F(ServiceTest, AppliesAndRestoresOnSigterm) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default\n");
    EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(ServiceTest, EndsOnSigintToo) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGINT), 0);
    EXPECT_EQ(scope(), "default\n");
}

TEST_F(ServiceTest, ReloadsOnSighup) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    tree_.write(kPolicy, "[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

// The tick of 15 s would find the changes too; the lost event causes a look at once.
TEST_F(ServiceTest, LooksAtEverythingWhereEventsWereLost) {
    Daemon daemon(tree_, [](sd_event* event, OnChange on_change) {
        static OnChange tell;
        tell = std::move(on_change);
        ::sd_event_add_signal(
            event, nullptr, SIGUSR1,
            [](sd_event_source* /*source*/, const signalfd_siginfo* /*info*/, void* /*self*/) {
                tell(Udev::Change::lost);
                return 0;
            },
            nullptr);
    });
    ASSERT_TRUE(applied());
    tree_.add(test::Dir("sys/devices/virtual/workqueue", {workqueue("nvme-wq")}));
    tree_.remove("sys/devices/virtual/workqueue/writeback");
    daemon.send(SIGUSR1);
    EXPECT_TRUE(eventually([&] { return tree_.read(wq_path("nvme-wq")) == "smt\n"; }));
    EXPECT_TRUE(eventually([&] { return entries().count("writeback") == 0; }));
    EXPECT_TRUE(logged("udev's queue overflowed"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

// The tables ask for the tree's 4 cores of 2 threads. They also count at the end, when on_exit is used.
TEST_F(ServiceTest, HostTablesThatMatchCount) {
    tree_.write(kPolicy, std::string("[[host]]\nname = \"a\"\nwhen = { cores = 4, smt = true }\n"
                                     "daemon = { on_exit = \"keep\" }\n"
                                     "[[host.workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n"
                                     "[[host]]\nname = \"b\"\nwhen = { cores = 8 }\n"
                                     "[[host.workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"));
    Daemon daemon(tree_);
    EXPECT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_TRUE(restore());
    EXPECT_EQ(scope(), "smt\n");
}

// cloud-init may set it after the daemon's start. A file of a tree cannot be polled: a tick finds the change.
TEST_F(ServiceTest, HostTablesAreLookedAtAgainWhenTheHostnameChanges) {
    tree_.write(kPolicy,
                "[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"
                "[[host]]\nname = \"all\"\n"
                "[[host]]\nname = \"web\"\nwhen.hostname = \"web-*\"\n"
                "workqueue = [{ match = \"kcryptd\", scope = \"smt\" }]\n");
    tree_.add(test::File("proc/sys/kernel/hostname", "localhost\n"));
    ::setenv("WATCHDOG_USEC", "600000", 1);
    Daemon daemon(tree_);
    ::unsetenv("WATCHDOG_USEC");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded; host tables in force: all\n"));
    EXPECT_EQ(scope(), "default (cache)\n");
    tree_.write("proc/sys/kernel/hostname", "web-7\n");
    EXPECT_TRUE(applied());
    EXPECT_TRUE(logged("the hostname is now 'web-7'\npolicy reloaded; host tables in force: all, web\n"));
    // The same tables match: no reload.
    tree_.write("proc/sys/kernel/hostname", "web-8\n");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_EQ(scope(), "smt\n");
    tree_.write("proc/sys/kernel/hostname", "db-1\n");
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; }));
    EXPECT_EQ(tree_.read("log").find("web-8"), std::string::npos);
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, KeepsThePolicyInUseWhereTheNewOneIsBroken) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    tree_.write(kPolicy, "[[workqueue]]\nmatch = \"*\"\nscope = \"leaf\"\n");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("wq-tuned.toml:3:"));
    EXPECT_EQ(scope(), "smt\n");
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default\n") << "on_exit is that of the policy in use";
}

TEST_F(ServiceTest, KeepsThePolicyInUseWhereTheNewOneIsNotEvenRead) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    tree_.mode(kPolicy, 0666);
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("wq-tuned.toml: everyone may write to it"));
    tree_.remove(kPolicy);
    tree_.link(kPolicy, "wq-tuned.toml");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("wq-tuned.toml: cannot be read: Too many levels"));
    tree_.remove(kPolicy);
    tree_.write(kPolicy, std::string(2'000'000, 'x'));
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("wq-tuned.toml: larger than 1 MiB"));
    EXPECT_EQ(scope(), "smt\n");
    tree_.write(kPolicy, "[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n");
    daemon.send(SIGHUP);
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, ObservesWhereThePolicyIsBrokenAtStart) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
    }  // kill -9
    ASSERT_EQ(scope(), "smt\n");
    tree_.write(kPolicy, "[daemon\n");
    Daemon daemon(tree_);
    EXPECT_TRUE(logged("wq-tuned.toml:1:"));
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; })) << "what the dead one left is put back";
    tree_.write(kPolicy, kApply);
    daemon.send(SIGHUP);
    EXPECT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, OfManyMistakesInAPolicyTheJournalHasSome) {
    std::string policy = "[daemon]\n";
    for (int i = 0; i < 30; i++) policy += "unknown" + std::to_string(i) + " = 1\n";
    tree_.write(kPolicy, policy);
    Daemon daemon(tree_);
    EXPECT_TRUE(logged("more; wq-tunectl check shows them"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default (cache)\n");
}

// The kernel made its pods without it, also where the daemon was restarted since.
TEST_F(ServiceTest, ACpuThatComesLaterIsNeverKnown) {
    tree_.remove("sys/devices/system");
    tree_.add(cpu_tree({.cores = 4, .threads = 2, .offline = "7"}));
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(daemon.end(SIGTERM), 0);
    }
    tree_.remove("sys/devices/system/cpu");
    tree_.remove("sys/devices/system/node");
    tree_.add(cpu_tree({.cores = 4, .threads = 2}));
    const Daemon daemon(tree_);
    EXPECT_TRUE(logged("pods unknown: CPUs that were not usable when the daemon first started: 7"));
}

// It would take a setting that they left for the kernel's.
TEST_F(ServiceTest, DoesNotStartBeforeWhatAbLeftIsPutBack) {
    tree_.add(test::File("run/wq-tuned/lab.json", "{}"));
    EXPECT_EQ(Daemon(tree_).wait(), 1);
    EXPECT_EQ(scope(), "default (cache)\n");
}

TEST_F(ServiceTest, IsAloneOnItsTree) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    Daemon second(tree_);
    EXPECT_EQ(second.wait(), 1);
    EXPECT_TRUE(restore());
    EXPECT_EQ(scope(), "smt\n") << "what a running daemon holds is not taken from it";
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default\n");
}

TEST_F(ServiceTest, WritesNothingWhereDisabledAndRestores) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
    }  // kill -9
    tree_.write("etc/wq-tuned/disabled", "");
    Daemon daemon(tree_);
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; }));
    tree_.remove("etc/wq-tuned/disabled");
    daemon.send(SIGHUP);
    EXPECT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, SaysOnceThatItObserves) {
    tree_.write("etc/wq-tuned/disabled", "");
    Daemon daemon(tree_);
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    tree_.remove("etc/wq-tuned/disabled");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("\nno longer observing\n"));
    EXPECT_TRUE(applied());
    tree_.write("etc/wq-tuned/disabled", "");
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("etc/wq-tuned/disabled exists; settings are restored\n"));
    daemon.send(SIGHUP);
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    const std::string log = tree_.read("log");
    const auto count = [&](const std::string& words) {
        int out = 0;
        for (auto at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) out++;
        return out;
    };
    EXPECT_EQ(count("settings are restored"), 1) << log;
    EXPECT_EQ(count("no longer observing"), 1) << log;
}

TEST_F(ServiceTest, WritesNothingWhereTheCommandLineSaysOff) {
    tree_.write("proc/cmdline", "wq_tuned=off\n");
    Daemon daemon(tree_);
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default (cache)\n") << "never touched";
}

TEST_F(ServiceTest, WritesNothingWhereTheBaselineIsBroken) {
    tree_.write("run/wq-tuned/owned.json", "{");
    Daemon daemon(tree_);
    EXPECT_TRUE(logged("observing, nothing is written"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default (cache)\n");
    EXPECT_EQ(tree_.read("run/wq-tuned/owned.json"), "{") << "kept for people to look at";
    EXPECT_FALSE(restore());
}

// Some resident pages were needed only once, by the start and by a reload.
TEST_F(ServiceTest, ATickGivesBackWhatMoreThanALookNeeded) {
    ::setenv("WATCHDOG_USEC", "3000000", 1);
    Daemon daemon(tree_);
    ::unsetenv("WATCHDOG_USEC");
    auto most = daemon.resident_files();
    daemon.send(SIGHUP);
    ASSERT_TRUE(logged("policy reloaded"));
    most = std::max(most, daemon.resident_files());
    // It never falls without a tick. Under the sanitizers a tick alone needs more than nine tenths.
#ifdef __SANITIZE_ADDRESS__
    const auto enough = most;
#else
    const auto enough = most / 10 * 9;
#endif
    EXPECT_TRUE(eventually([&] { return daemon.resident_files() < enough; }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

// A FIFO replaces the temporary file: open(2) waits for a reader.
TEST_F(ServiceTest, ADiskThatDoesNotAnswerHoldsUpNothing) {
    tree_.write(kPolicy,
                "[judge]\njitter = \"0s\"\nsettle = \"0s\"\nwindow = \"500ms\"\nwashout = \"100ms\"\n"
                "counters = [\"file:/cost\"]\n"
                "[[workqueue]]\nmatch = \"kcryptd\"\nscope = \"smt\"\n");
    tree_.write("cost", "10\n");
    tree_.add(test::Dir("var/lib/wq-tuned"));
    ASSERT_EQ(::mkfifo(tree_.path("var/lib/wq-tuned/ledger.json.new").c_str(), 0600), 0);
    ::setenv("WATCHDOG_USEC", "2000000", 1);
    Daemon daemon(tree_);
    ::unsetenv("WATCHDOG_USEC");
    ASSERT_TRUE(eventually([&] { return daemon.threads() == 2; })) << "the first slot is to be saved";
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_THAT(scope(), testing::StartsWith("default"));
    EXPECT_TRUE(logged("ledger.json: not written: the disk does not respond"));
}

TEST_F(ServiceTest, SaysOnceWhatAKernelLacks) {
    tree_.remove("sys/devices/virtual/workqueue");
    tree_.remove("sys/module");
    Daemon daemon(tree_);
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(
        tree_.read("log"),
        "Linux 6.12.107 has no affinity scopes: 6.6 or later is needed; nothing to do\npolicy reloaded\n");
}

}  // namespace
}  // namespace wq
