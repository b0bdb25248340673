// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon itself, as a child process, on a tree that stands for the machine.
#include "service/service.h"

#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <syslog.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fake_rig.h"
#include "policy/load_policy.h"
#include "service_rig.h"

namespace wq {
namespace {

using nlohmann::json;
using test::Daemon;
using test::ServiceTest;
using test::wq_path;
using testing::HasSubstr;

TEST_F(ServiceTest, AppliesAndRestoresWhenItIsStopped) {
    for (const int signal : {SIGTERM, SIGINT}) {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
        EXPECT_EQ(daemon.end(signal), 0);
        EXPECT_EQ(scope(), "default\n");
        EXPECT_THAT(entries(), testing::IsEmpty());
    }
}

// The tick of 15 s would find the changes too; the lost event causes a look at once.
TEST_F(ServiceTest, LooksAtEverythingWhereEventsWereLost) {
    Daemon daemon(tree_, test::usr1_is(Udev::Change::lost));
    ASSERT_TRUE(applied());
    tree_.add(test::Dir("sys/devices/virtual/workqueue", {test::workqueue("nvme-wq")}));
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

// ---- what the daemon leaves and what is restored, for each way to end it

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

// The daemon sets Mark::restart when systemd tells it of a restart; a tree has no systemd.
TEST_F(ServiceTest, ARestartLeavesTheSettingsOnceAndOnlyWhereTheDaemonEndedWell) {
    const Paths paths{tree_.root()};
    Daemon daemon(tree_);
    ASSERT_TRUE(applied());
    (void)daemon.end(SIGKILL);
    for (const char* result : {"success", "exit-code", ""}) {
        tree_.write(wq_path("kcryptd"), "smt\n");
        OwnedStore store(paths.owned());
        ASSERT_TRUE(store.load());
        store.put({"kcryptd",
                   inode_of("kcryptd"),
                   {Knob::scope, "default", {"smt"}},
                   Attribute{Knob::strict, "0"}});
        ASSERT_TRUE(store.save());
        ASSERT_TRUE(set_mark(paths, Mark::restart, true));
        ::setenv("SERVICE_RESULT", result, 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), std::string(result) == "success" ? "smt\n" : "default\n") << result;
        EXPECT_FALSE(tree_.exists("run/wq-tuned/restart"));
        ::setenv("SERVICE_RESULT", "success", 1);
        EXPECT_TRUE(restore());
        EXPECT_EQ(scope(), "default\n") << "the mark is for one end";
    }
    ::unsetenv("SERVICE_RESULT");
    ASSERT_TRUE(set_mark(paths, Mark::restart, true));
    Daemon next(tree_);
    ASSERT_TRUE(applied());
    EXPECT_FALSE(tree_.exists("run/wq-tuned/restart")) << "nor does it outlive a start";
    EXPECT_EQ(next.end(SIGTERM), 0);
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
        EXPECT_THAT(entries(), testing::IsEmpty());
    }
}

TEST_F(ServiceTest, WhatCannotBePutBackIsCountedAndStaysOnRecord) {
    {
        Daemon daemon(tree_);
        ASSERT_TRUE(applied());
        ASSERT_TRUE(eventually([&] { return tree_.read(wq_path("writeback")) == "smt\n"; }));
    }  // kill -9
    tree_.remove(wq_path("kcryptd"));
    tree_.add(test::Dir(wq_path("kcryptd")));  // cannot be read or written
    const auto restored = restore();
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().text, "settings not restored: 1");
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_EQ(entries().at("kcryptd").main.baseline, "default");
    EXPECT_EQ(tree_.read(wq_path("writeback")), "default\n");
}

// ---- the file for node_exporter; tests/guest/checks/metrics.sh has its life

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

// Also at the start, if the file of the previous daemon is still there, as after a restart.
TEST_F(MetricsServiceTest, ABrokenPolicyIsTold) {
    {
        Daemon daemon(tree_);
        EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
        tree_.write(kPolicy, "[daemon\n");
        daemon.send(SIGHUP);
        EXPECT_TRUE(shows("wq_tuned_policy_broken 1"));
        EXPECT_TRUE(shows("wq_tuned_state{state=\"running\"} 1")) << "the one in use stays";
    }  // kill -9
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_state{state=\"observing\"} 1"));
    EXPECT_TRUE(shows("wq_tuned_policy_broken 1"));
    EXPECT_EQ(daemon.end(SIGTERM), 0);
    EXPECT_FALSE(tree_.exists(kTextfile));
}

// The disk of the metrics may not answer. The test stops the restorer between two of its system calls, when
// the metrics are gone.
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
    EXPECT_TRUE(tree_.exists("run/wq-tuned/textfile")) << "the next daemon owns it";
    EXPECT_TRUE(restore());
    EXPECT_FALSE(tree_.exists("run/wq-tuned/textfile"));
}

// ---- the status while the policy on disk is broken, the pause, when to look again

const PolicyErrors kBroken = {{"/etc/a.toml", 6, 1, "unknown key \"scop\"", ""},
                              {"/etc/b.toml", 1, 1, "x", ""}};
constexpr const char* kError = "/etc/a.toml:6:1: unknown key \"scop\"";

class PolicyStateTest : public test::Rig {
  protected:
    json status(const PolicyState& policy) { return status_json(parts_->engine, nullptr, "running", policy); }
    // What the status says of POLICY.
    json said(const PolicyState& policy) { return status(policy)["daemon"]["policy"]; }
    static json is(const char* state, const json& error, int since, const json& in_force) {
        return {{"expired", json::array()},
                {"state", state},
                {"error", error},
                {"since", since},
                {"in_force", in_force}};
    }
};

TEST_F(PolicyStateTest, AfterAReloadThatFailedTheOldOneIsInForce) {
    PolicyState policy;
    policy.loaded(1000);
    EXPECT_EQ(said(policy), is("loaded", nullptr, 1000, 1000));
    policy.broken(kBroken, 2000);
    policy.broken(kBroken, 3000);
    EXPECT_EQ(said(policy), is("broken", kError, 2000, 1000));
    EXPECT_FALSE(policy.nothing_to_plan_by());
    policy.loaded(4000);
    EXPECT_EQ(said(policy), is("loaded", nullptr, 4000, 4000));
}

TEST_F(PolicyStateTest, AfterABrokenStartTargetsSayThatThereIsNoPolicy) {
    parts_->engine.set_policy(no_policy());
    parts_->targets.observe("the policy is broken");
    opted_out_ = {"writeback"};
    parts_->engine.reconcile();
    PolicyState policy;
    policy.broken(kBroken, 2000);
    const json document = status(policy);
    EXPECT_EQ(said(policy), is("broken", kError, 2000, nullptr));
    const json& targets = document["targets"];
    EXPECT_EQ(targets[0]["reason"], "cannot plan: invalid policy") << targets[0]["name"];
    EXPECT_EQ(targets[1]["reason"], "cannot plan: invalid policy") << targets[1]["name"];
    EXPECT_THAT(targets[2]["reason"].get<std::string>(), HasSubstr("WQ_TUNED_IGNORE"))
        << "so it would be by any policy";
    EXPECT_EQ(status_json(parts_->engine, nullptr, "running")["targets"][1]["reason"], "no rule matches");
}

// The Parts of a daemon after its start.
struct PauseTest : testing::Test {
    [[nodiscard]] Parts parts() {
        return {paths, log, record, [](const std::string&) { return false; }};
    }
    test::TempTree tree{test::kernel_tree({test::workqueue("kcryptd")})};
    Paths paths{tree.root()};
    WriteAtOnce record;
    test::FakeLog log;
};

TEST_F(PauseTest, LastsThroughARestartUntilItIsEnded) {
    EXPECT_FALSE(parts().experiment.is_paused());
    Parts(paths, log, record, {}).pause(true);
    const std::size_t lines = log.lines.size();
    Parts second = parts();
    EXPECT_TRUE(second.experiment.is_paused());
    EXPECT_EQ(log.lines.size(), lines + 1) << "a start says so";
    second.pause(true);
    EXPECT_EQ(log.lines.size(), lines + 1) << "an order of what is so is no news";
    second.pause(false);
    EXPECT_FALSE(parts().experiment.is_paused());
    EXPECT_FALSE(tree.exists("var/lib/wq-tuned/paused"));
    EXPECT_EQ(log.at_least(LOG_WARNING), 0U);
}

TEST_F(PauseTest, HoldsAndIsLoggedWhereItCannotBeRecorded) {
    tree.add(test::File("var", "no folder"));
    Parts now = parts();
    const std::size_t before = log.at_least(LOG_WARNING);
    now.pause(true);
    EXPECT_TRUE(now.experiment.is_paused());
    EXPECT_EQ(log.at_least(LOG_WARNING), before + 1);
    EXPECT_THAT(log.lines.back().text,
                testing::HasSubstr("the order is in force only until the daemon ends"));
}

enum class What { event, looked, failed };

struct Moment {
    What what;
    std::uint64_t at;                  // ms
    std::optional<std::uint64_t> due;  // ms, when the next look is due then
};

TEST(Agenda, WaitsForTheEndOfABurstAndTriesAgainAfterFailures) {
    using enum What;
    constexpr auto never = std::nullopt;
    const std::vector<std::pair<const char*, std::vector<Moment>>> cases = {
        {"a lone event", {{event, 5000, 5200}}},
        {"a burst, also at the time 0", {{event, 0, 200}, {event, 150, 350}, {event, 349, 549}}},
        {"at most a second",
         {{event, 1000, 1200},
          {event, 1190, 1390},
          {event, 1380, 1580},
          {event, 1570, 1770},
          {event, 1760, 1960},
          {event, 1950, 2000}}},
        {"anew after a look",
         {{event, 1000, 1200}, {event, 1190, 1390}, {looked, 1900, never}, {event, 2100, 2300}}},
        {"failures",
         {{failed, 0, 250},
          {failed, 250, 750},
          {failed, 750, 1750},
          {failed, 1750, 3750},
          {failed, 3750, 7750},
          {failed, 7750, 11750},
          {looked, 11750, never},
          {failed, 20000, 20250}}},
        {"an event before a retry",
         {{failed, 0, 250}, {failed, 250, 750}, {event, 300, 500}, {event, 400, 600}}},
        {"an event after a retry was due", {{failed, 0, 250}, {event, 1000, 1200}}},
    };
    for (const auto& [name, steps] : cases) {
        SCOPED_TRACE(name);
        Agenda agenda;
        EXPECT_EQ(agenda.due(), never);
        for (const Moment& step : steps) {
            if (step.what == event)
                agenda.event(step.at * 1000);
            else
                agenda.looked(step.what == failed, step.at * 1000);
            EXPECT_EQ(agenda.due(), step.due ? std::optional(*step.due * 1000) : never) << step.at;
        }
    }
}

}  // namespace
}  // namespace wq
