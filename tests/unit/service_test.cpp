// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon itself, as a child process, on a tree that stands for the machine.
#include "service/service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "engine/baseline.h"
#include "engine/lock.h"
#include "fake_machine.h"
#include "resident.h"
#include "service/restorer.h"

namespace wq {
namespace {

using test::cpu_tree;
using test::kernel_tree;
using test::TempTree;
using test::workqueue;
using test::wq_path;
using testing::IsEmpty;

constexpr const char* kPolicy = "etc/wq-tuned/wq-tuned.toml";
constexpr const char* kApply =
    "[daemon]\napply_unjudged = true\n[[workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n";
constexpr const char* kKeep =
    "[daemon]\non_exit = \"keep\"\napply_unjudged = true\n[[workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n";

bool eventually(const std::function<bool()>& so) {
    for (int i = 0; i < 6000; i++) {
        if (so()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

using OnChange = std::function<void(Udev::Change)>;
using Events = std::function<void(sd_event*, OnChange)>;

// `wq-tuned --root TREE`, killed at the latest with this object. Signals that are sent before it listens wait
// for it.
class Daemon {
  public:
    explicit Daemon(const TempTree& tree, Events events = {}) {
        sigset_t ours;
        sigset_t before;
        ::sigemptyset(&ours);
        for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&ours, signal);
        ::sigprocmask(SIG_BLOCK, &ours, &before);
        child_ = ::fork();
        if (child_ != 0) {
            ::sigprocmask(SIG_SETMASK, &before, nullptr);
            return;
        }
        const int log = ::open(tree.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        ::dup2(log, STDERR_FILENO);
        ::_exit(Service({tree.root(), std::nullopt, std::move(events)}).run() ? 0 : 1);
    }
    ~Daemon() {
        if (child_ > 0) (void)end(SIGKILL);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    void send(int signal) const { ::kill(child_, signal); }
    [[nodiscard]] unsigned long resident_files() const {
        return test::resident_files(std::to_string(child_));
    }
    [[nodiscard]] std::ptrdiff_t threads() const {
        return std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(child_) + "/task"),
                             {});
    }
    // Exit status, or minus the signal that ended it.
    int wait() {
        int status = 0;
        EXPECT_GT(::waitpid(std::exchange(child_, -1), &status, 0), 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    int end(int signal) {
        send(signal);
        return wait();
    }

  private:
    pid_t child_ = -1;
};

class ServiceTest : public testing::Test {
  protected:
    ServiceTest() {
        tree_.add(cpu_tree({.cores = 4, .threads = 2}));
        tree_.write(kPolicy, kApply);
    }
    [[nodiscard]] std::string scope() const { return tree_.read(wq_path("kcryptd")); }
    [[nodiscard]] bool applied() const {
        return eventually([&] { return scope() == "smt\n"; });
    }
    [[nodiscard]] bool logged(const std::string& text) const {
        return eventually(
            [&] { return tree_.exists("log") && tree_.read("log").find(text) != std::string::npos; });
    }
    [[nodiscard]] std::map<std::string, BaselineEntry> entries() const {
        BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
        EXPECT_TRUE(store.load());
        return store.entries();
    }
    [[nodiscard]] ino_t inode_of(const std::string& name) const {
        struct stat st {};
        EXPECT_EQ(::stat(tree_.path("sys/devices/virtual/workqueue/" + name).c_str(), &st), 0);
        return st.st_ino;
    }
    [[nodiscard]] Status restore() const { return restore_after_exit({tree_.root()}); }

    TempTree tree_{kernel_tree({workqueue("kcryptd"), workqueue("writeback")})};
};

TEST_F(ServiceTest, AppliesAndRestoresOnSigterm) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_EQ(entries().at("kcryptd").scope, "default");
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

// No tick comes as soon as this waits.
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

// The tree's 4 cores of 2 threads are what the tables ask about; at its end too, where on_exit counts.
TEST_F(ServiceTest, HostTablesThatMatchCount) {
    tree_.write(kPolicy, std::string("[[host]]\nname = \"a\"\nwhen = { cores = 4, smt = true }\n"
                                     "daemon = { on_exit = \"keep\", apply_unjudged = true }\n"
                                     "[[host.workqueue]]\nmatch = \"*\"\nscope = \"smt\"\n"
                                     "[[host]]\nname = \"b\"\nwhen = { cores = 8 }\n"
                                     "[[host.workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"));
    Daemon daemon(tree_);
    EXPECT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_TRUE(restore());
    EXPECT_EQ(scope(), "smt\n");
}

// As cloud-init does, after the daemon's start. A tree's file cannot be polled: a tick finds it.
TEST_F(ServiceTest, HostTablesAreLookedAtAgainWhenTheHostnameChanges) {
    tree_.write(kPolicy,
                "[daemon]\napply_unjudged = true\n[[workqueue]]\nmatch = \"*\"\nscope = \"leave\"\n"
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
    // The same tables: no reload, whatever is on disk.
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

TEST_F(ServiceTest, KeepsTheSettingsAndTheEntriesWhereToldTo) {
    tree_.write(kPolicy, kKeep);
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(daemon.end(SIGTERM), 0);
    }
    EXPECT_EQ(scope(), "smt\n");
    EXPECT_EQ(entries().at("kcryptd").scope, "default");
    EXPECT_TRUE(restore());
    EXPECT_EQ(scope(), "smt\n") << "ExecStopPost= obeys too";
    // And back: the next daemon knows the first baseline.
    tree_.write(kPolicy, kApply);
    Daemon daemon(tree_);
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default\n");
    EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(ServiceTest, OnExitIsThatOfThePolicyInForceHoweverTheDaemonEnds) {
    for (const int signal : {SIGTERM, SIGKILL}) {
        tree_.write(kPolicy, kKeep);
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        tree_.write(kPolicy, "[daemon\n");  // not in force, and broken
        (void)daemon.end(signal);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "smt\n");
        tree_.write(kPolicy, kApply);
        Daemon next(tree_);
        ASSERT_TRUE(eventually([&] { return !tree_.exists("run/wq-tuned/keep"); }));
        tree_.write(kPolicy, kKeep);  // not in force
        (void)next.end(signal);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n");
    }
}

TEST_F(ServiceTest, WhenAllIsPutBackThePolicyDoesNotCount) {
    tree_.write(kPolicy, kKeep);
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    const auto beside = restore_after_exit({tree_.root(), true});
    ASSERT_FALSE(beside);
    EXPECT_EQ(beside.error().code, EWOULDBLOCK) << "nothing is put back, and that is said";
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "smt\n");
    EXPECT_TRUE(restore_after_exit({tree_.root(), true}));
    EXPECT_EQ(scope(), "default\n");
    EXPECT_THAT(entries(), IsEmpty());
}

// As the daemon says it where it knows from systemd; a tree has no systemd.
TEST_F(ServiceTest, ARestartLeavesTheSettingsOnceAndOnlyWhereTheDaemonEndedWell) {
    const Paths paths{tree_.root()};
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    (void)daemon.end(SIGKILL);
    for (const char* result : {"success", "exit-code", ""}) {
        tree_.write(wq_path("kcryptd"), "smt\n");
        BaselineStore store(paths.baseline());
        ASSERT_TRUE(store.load());
        store.put({"kcryptd", inode_of("kcryptd"), "default", false, {"smt"}, {}});
        ASSERT_TRUE(store.save());
        ASSERT_TRUE(mark_restart(paths, true));
        ::setenv("SERVICE_RESULT", result, 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), std::string(result) == "success" ? "smt\n" : "default\n") << result;
        EXPECT_FALSE(tree_.exists("run/wq-tuned/restart"));
        ::setenv("SERVICE_RESULT", "success", 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n") << "the mark is for one end";
    }
    ::unsetenv("SERVICE_RESULT");
}

TEST_F(ServiceTest, AMarkOfAnEarlierRestartDoesNotOutliveAStart) {
    tree_.add(test::File("run/wq-tuned/restart"));
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_FALSE(tree_.exists("run/wq-tuned/restart"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(ServiceTest, TheSwitchGoesBeforeKeepAtTheEnd) {
    tree_.write(kPolicy, kKeep);
    for (const int signal : {SIGTERM, SIGKILL}) {
        tree_.remove("etc/wq-tuned/disabled");
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        tree_.write("etc/wq-tuned/disabled", "");
        (void)daemon.end(signal);
        EXPECT_EQ(scope(), signal == SIGTERM ? "default\n" : "smt\n");
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n");
        EXPECT_THAT(entries(), IsEmpty());
    }
}

TEST_F(ServiceTest, IsCleanedUpAfterAKill) {
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    EXPECT_EQ(daemon.end(SIGKILL), -SIGKILL);
    EXPECT_EQ(scope(), "smt\n");
    tree_.write(wq_path("writeback"), "numa\n");  // by somebody else, meanwhile
    const auto restored = restore();
    EXPECT_TRUE(restored) << restored.error().text;
    EXPECT_EQ(scope(), "default\n");
    EXPECT_EQ(tree_.read(wq_path("writeback")), "numa\n");
    EXPECT_THAT(entries(), IsEmpty());
    EXPECT_TRUE(restore()) << "a second time finds nothing to do";
}

TEST_F(ServiceTest, WhatCannotBePutBackIsCountedAndStaysOnRecord) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        ASSERT_TRUE(eventually([&] { return entries().size() == 2; }));
    }  // kill -9
    tree_.remove(wq_path("kcryptd"));
    tree_.add(test::Dir(wq_path("kcryptd")));  // neither read nor written
    const auto restored = restore();
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().text, "1 targets were not put back");
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_EQ(entries().at("kcryptd").scope, "default");
    EXPECT_EQ(tree_.read(wq_path("writeback")), "default\n");
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

TEST_F(ServiceTest, WritesNothingWhereTheCommandLineSaysOff) {
    tree_.write("proc/cmdline", "wq_tuned=off\n");
    Daemon daemon(tree_);
    daemon.send(SIGHUP);
    EXPECT_TRUE(logged("policy reloaded"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default (cache)\n") << "never touched";
}

TEST_F(ServiceTest, WritesNothingWhereTheBaselineIsBroken) {
    tree_.write("run/wq-tuned/baseline.json", "{");
    Daemon daemon(tree_);
    EXPECT_TRUE(logged("observing, nothing is written"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_EQ(scope(), "default (cache)\n");
    EXPECT_EQ(tree_.read("run/wq-tuned/baseline.json"), "{") << "kept for people to look at";
    EXPECT_FALSE(restore());
}

constexpr const char* kTextfile = "srv/metrics/wq.prom";
constexpr const char* kMetrics = "[metrics]\ntextfile = \"/srv/metrics/wq.prom\"\n";

class MetricsServiceTest : public ServiceTest {
  protected:
    MetricsServiceTest() {
        tree_.add(test::Dir("srv/metrics"));
        tree_.write(kPolicy, std::string(kApply) + kMetrics);
    }
    [[nodiscard]] bool shows(const std::string& line) const {
        return eventually([&] {
            return tree_.exists(kTextfile) &&
                   tree_.read(kTextfile).find("\n" + line + "\n") != std::string::npos;
        });
    }
};

TEST_F(MetricsServiceTest, TheyTellWhatIsAndGoWithTheDaemon) {
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_targets{state=\"applied\"} 2"));
    EXPECT_TRUE(shows("wq_tuned_writes_total 2"));
    EXPECT_TRUE(shows("wq_tuned_policy_files 1"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_FALSE(tree_.exists(kTextfile));
}

TEST_F(MetricsServiceTest, AreThereOnlyWhereThePolicyWantsThem) {
    tree_.write(kPolicy, kApply);
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    tree_.write(kPolicy, std::string(kApply) + kMetrics);
    daemon.send(SIGHUP);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
    tree_.write(kPolicy, kApply);
    daemon.send(SIGHUP);
    EXPECT_TRUE(eventually([&] { return !tree_.exists(kTextfile); }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

TEST_F(MetricsServiceTest, ABrokenPolicyIsTold) {
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
    tree_.write(kPolicy, "[daemon\n");
    daemon.send(SIGHUP);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 1"));
    EXPECT_TRUE(shows("wq_tuned_state{state=\"running\"} 1")) << "the one in use stays";
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_FALSE(tree_.exists(kTextfile));
}

// As by a restart: the file of the daemon before is there.
TEST_F(MetricsServiceTest, ABrokenPolicyAtStartIsToldWhereTheDaemonBeforeTold) {
    {
        Daemon daemon(tree_);
        EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
    }  // kill -9
    tree_.write(kPolicy, "[daemon\n");
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 1"));
    EXPECT_TRUE(shows("wq_tuned_state{state=\"observing\"} 1"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_FALSE(tree_.exists(kTextfile));
}

TEST_F(MetricsServiceTest, DoNotOutliveAKill) {
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
    EXPECT_EQ(daemon.end(SIGKILL), -SIGKILL);
    EXPECT_TRUE(tree_.exists(kTextfile));
    tree_.write(kPolicy, "[daemon\n");
    EXPECT_TRUE(restore());
    EXPECT_FALSE(tree_.exists(kTextfile)) << "also where the policy does not say any more where it is";
}

// Whose disk may not answer. The restorer is looked at between two of its system calls, where they are gone.
TEST_F(MetricsServiceTest, TheRestorerRemovesThemWithoutTheLock) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(shows("wq_tuned_policy_broken 0"));
    }  // kill -9
    const pid_t child = ::fork();
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        ::_exit(restore() ? 0 : 1);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status) && tree_.exists(kTextfile))
        ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ASSERT_TRUE(WIFSTOPPED(status));
    EXPECT_EQ(scope(), "default\n");
    {
        const auto next = take_lock(Paths{tree_.root()});
        EXPECT_TRUE(next) << next.error().text;
        ::ptrace(PTRACE_DETACH, child, nullptr, nullptr);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
    }
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(tree_.exists("run/wq-tuned/textfile")) << "it is of the next daemon";
    EXPECT_TRUE(restore());
    EXPECT_FALSE(tree_.exists("run/wq-tuned/textfile"));
}

// What is resident was in part needed once: by the start, and by a reload.
TEST_F(ServiceTest, ATickGivesBackWhatMoreThanALookNeeded) {
    ::setenv("WATCHDOG_USEC", "3000000", 1);
    Daemon daemon(tree_);
    ::unsetenv("WATCHDOG_USEC");
    auto most = daemon.resident_files();
    daemon.send(SIGHUP);
    ASSERT_TRUE(logged("policy reloaded"));
    most = std::max(most, daemon.resident_files());
    // It never falls by itself. Under the sanitizers a tick itself needs more than nine tenths.
#ifdef __SANITIZE_ADDRESS__
    const auto enough = most;
#else
    const auto enough = most / 10 * 9;
#endif
    EXPECT_TRUE(eventually([&] { return daemon.resident_files() < enough; }));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
}

// A FIFO in place of the temporary file: who opens it waits for a reader.
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
    EXPECT_TRUE(logged("ledger.json: not written, the disk does not answer"));
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
