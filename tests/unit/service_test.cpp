// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon itself, as a child process, on a tree that stands for the machine.
#include "service/service.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "service_rig.h"

namespace wq {
namespace {

using test::Daemon;
using test::ServiceTest;
using test::usr1_is;
using test::workqueue;
using test::wq_path;
using testing::IsEmpty;

TEST_F(ServiceTest, AppliesAndRestoresWhenItIsStopped) {
    for (const int signal : {SIGTERM, SIGINT}) {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
        EXPECT_EQ(daemon.end(signal), 0);
        EXPECT_EQ(scope(), "default\n");
        EXPECT_THAT(entries(), IsEmpty());
    }
}

// The tick of 15 s would find the changes too; the lost event causes a look at once.
TEST_F(ServiceTest, LooksAtEverythingWhereEventsWereLost) {
    Daemon daemon(tree_, usr1_is(Udev::Change::lost));
    ASSERT_TRUE(applied());
    tree_.add(test::Dir("sys/devices/virtual/workqueue", {workqueue("nvme-wq")}));
    tree_.remove("sys/devices/virtual/workqueue/writeback");
    daemon.send(SIGUSR1);
    EXPECT_TRUE(eventually([&] { return tree_.read(wq_path("nvme-wq")) == "smt\n"; }));
    EXPECT_TRUE(eventually([&] { return entries().count("writeback") == 0; }));
    EXPECT_TRUE(logged("udev's queue overflowed"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
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

// Each row: the file's content and mode, "" for a link to itself.
TEST_F(ServiceTest, KeepsThePolicyInUseWhereTheNewOneIsBrokenOrNotEvenRead) {
    struct Broken {
        std::string text;
        unsigned mode;
        const char* said;
    };
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    for (const auto& [text, mode, said] :
         {Broken{"[[workqueue]]\nmatch = \"*\"\nscope = \"leaf\"\n", 0644, "wq-tuned.toml:3:"},
          {kApply, 0666, "wq-tuned.toml: everyone may write to it"},
          {"", 0644, "wq-tuned.toml: cannot be read: Too many levels"},
          {std::string(2'000'000, 'x'), 0644, "wq-tuned.toml: larger than 1 MiB"}}) {
        tree_.remove(kPolicy);
        if (text.empty()) {
            tree_.link(kPolicy, "wq-tuned.toml");
        } else {
            tree_.write(kPolicy, text);
            tree_.mode(kPolicy, mode);
        }
        daemon.send(SIGHUP);
        EXPECT_TRUE(logged(said));
        EXPECT_EQ(scope(), "smt\n") << said;
    }
    tree_.remove(kPolicy);
    tree_.write(kPolicy, "[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n");
    daemon.send(SIGHUP);
    EXPECT_TRUE(eventually([&] { return scope() == "default\n"; }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

// Each row: what prevents writing, and what is there otherwise. What a dead daemon left is put back.
TEST_F(ServiceTest, OnlyObservesWhereItIsDisabledOrThePolicyIsBrokenAtStart) {
    for (const auto& [path, text, otherwise] :
         {std::array{kPolicy, "[daemon\n", kApply}, {"etc/wq-tuned/disabled", "", ""}}) {
        {
            Daemon daemon(tree_);
            ASSERT_TRUE(applied());
        }  // kill -9
        ASSERT_EQ(scope(), "smt\n");
        tree_.write(path, text);
        Daemon daemon(tree_);
        EXPECT_TRUE(eventually([&] { return scope() == "default\n"; })) << path;
        tree_.remove(path);
        if (*otherwise != '\0') tree_.write(path, otherwise);
        daemon.send(SIGHUP);
        EXPECT_TRUE(applied()) << path;
        EXPECT_EQ(daemon.end(SIGTERM), 0);
    }
}

// The kernel made its pods without it, also where the daemon was restarted since.
TEST_F(ServiceTest, ACpuThatComesLaterIsNeverKnown) {
    tree_.remove("sys/devices/system");
    tree_.add(test::cpu_tree({.cores = 4, .threads = 2, .offline = "7"}));
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(daemon.end(SIGTERM), 0);
    }
    tree_.remove("sys/devices/system/cpu");
    tree_.remove("sys/devices/system/node");
    tree_.add(test::cpu_tree({.cores = 4, .threads = 2}));
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

// Each row: a file, its text and what is logged.
TEST_F(ServiceTest, TouchesNothingWhereTheCommandLineSaysOffOrTheBaselineIsBroken) {
    for (const auto& [path, text, said] :
         {std::array{"proc/cmdline", "wq_tuned=off\n", "policy reloaded"},
          {"run/wq-tuned/owned.json", "{", "observing, nothing is written"}}) {
        tree_.write("proc/cmdline", "");
        tree_.write(path, text);
        Daemon daemon(tree_);
        daemon.send(SIGHUP);
        EXPECT_TRUE(logged(said));
        EXPECT_EQ(daemon.end(SIGTERM), 0);
        EXPECT_EQ(scope(), "default (cache)\n") << path;
        EXPECT_EQ(tree_.read(path), text) << "a broken baseline is kept for people to look at";
    }
    EXPECT_FALSE(restore());
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
