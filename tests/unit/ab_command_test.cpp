// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests `ab`: its runs, output, errors, and settings that an earlier run left.
#include "ctl/lab/ab.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <tuple>

#include "ab_rig.h"
#include "service/restorer.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::AbCommand;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(AbCommand, RunsTheCommandUnderEachArmAndPutsTheBaselineBack) {
    const auto ran = ab(with(kTwo, {"--json"}), {"sh", "-c", says_scope_});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["target"], "kcryptd-1");
    EXPECT_EQ(report["unit"], "ns");
    EXPECT_EQ(report["rounds"], 3);
    const json& smt = report["arms"][1];
    EXPECT_EQ(smt["arm"], "smt");
    EXPECT_EQ(smt["role"], "candidate");
    EXPECT_EQ(smt["pools"], 4);
    EXPECT_EQ(smt["kworkers"], 2);
    EXPECT_EQ(smt["values"].size(), 3U);
    EXPECT_EQ(smt["verdict"], "undecided");
    EXPECT_TRUE(smt["interval_percent"].is_null());
    EXPECT_FALSE(report["arms"][0].contains("verdict"));
    const std::string runs = tree_.read("runs");
    EXPECT_EQ(std::count(runs.begin(), runs.end(), '\n'), 6);
    expect_baseline();
}

TEST_F(AbCommand, TakesANumberOutOfTheOutput) {
    const std::string script =
        "grep -q smt '" + tree_.path(test::wq_path("kcryptd-1")) +
        "' && echo '{\"write\":\n {\"bw\" : 200}}' || echo '{\"write\":\n {\"bw\" : 100}}'";
    const std::vector<std::string> words{"--metric", R"x((?s)"write".*?"bw" : (\d+))x", "--higher-is-better",
                                         "--json"};
    const auto ran = ab(with({"--target", "kcryptd-1", "--arms", "cache,smt"}, words), {"sh", "-c", script});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["arms"][1]["verdict"], "improved");
    EXPECT_NEAR(report["arms"][1]["effect_percent"].get<double>(), -50, 1e-9);
    EXPECT_EQ(report["arms"][1]["median"], 200);
}

TEST_F(AbCommand, SweepsAfterWarmUpsAndPrintsATable) {
    const auto ran =
        ab({"--target", "kcryptd-1", "--sweep", "--pairs", "3", "--warmup", "2"}, {"sh", "-c", says_scope_});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    EXPECT_THAT(tree_.read("runs"), StartsWith("cache\ncache\n"));
    EXPECT_THAT(ran.out, StartsWith("ARM    POOLS  KWORKERS  RUNS  MEDIAN"));
    EXPECT_THAT(ran.out, HasSubstr("\nsmt    4      2         3     "));
    EXPECT_THAT(ran.out, HasSubstr("\ncpu    8      2         3     "));
    EXPECT_THAT(ran.err, StartsWith("round 1 of 3\nround 2 of 3; smt "));
    expect_baseline();
}

TEST_F(AbCommand, ErrorsNameTheRunAndLeaveNothing) {
    const struct {
        std::vector<std::string> more, command;
        std::string says;
    } cases[] = {
        {{}, {"sh", "-c", "exit 3"}, "sh: exit code 3"},
        {{}, {"sh", "-c", "kill -SEGV $$"}, "sh: killed by SIGSEGV"},
        {{}, {"no-such-command"}, "no-such-command: No such file or directory"},
        {{"--metric", "bw=(.*)"}, {"echo", "nothing"}, "nothing in its output matches --metric"},
        {{"--metric", "bw=(.*)"}, {"echo", "bw=fast"}, "\"fast\", which is not a number"},
        {{"--metric", "bw=(.*)"}, {"echo", "bw=0"}, "only numbers above 0"},
        {{"--metric", "bw=(.*)"}, {"echo", "bw=inf"}, "\"inf\", which is not a number"},
        {{"--metric", "bw=(x)?"}, {"echo", "bw="}, "has no part in the match"},
        {{"--metric", "bw=(.*)"}, {"sh", "-c", "yes | head -c 17000000"}, "more than 16777216 bytes"},
    };
    for (const auto& each : cases) {
        const auto ran = ab(with(kTwo, each.more), each.command);
        EXPECT_EQ(ran.code, kFailure);
        EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: run 1 ("));
        EXPECT_THAT(ran.err, HasSubstr(each.says));
        EXPECT_EQ(ran.out, "");
        expect_baseline();
    }
}

TEST_F(AbCommand, WhatCannotBeComparedIsRefusedBeforeTheCommandRuns) {
    const std::vector<std::string> command{"touch", tree_.path("ran")};
    for (const auto& [target, arms, says] : {std::tuple{"nothing", "cache,smt", "no such target"},
                                             {"one", "cache,smt", "max_active is 1"},
                                             {"kcryptd-1", "cache,cache_shard", "no cache_shard"},
                                             {"@default", "cache,smt:strict", "no strictness"}}) {
        const auto ran = ab({"--target", target, "--arms", arms}, command);
        EXPECT_EQ(ran.code, kFailure);
        EXPECT_THAT(ran.err, HasSubstr(says));
        EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
    EXPECT_EQ(ab({"--file", "/etc/nr_requests", "--values", "1,2"}, command).err,
              "wq-tunectl: --file: /etc/nr_requests is not below /sys or /proc\n");
    EXPECT_FALSE(tree_.exists("ran"));
    expect_baseline();
}

TEST_F(AbCommand, ATerminalThatIsGoneLeavesNothing) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (FILE* stream : {stdout, stderr}) {
            (void)!::freopen("/dev/full", "w", stream);
            ::setvbuf(stream, nullptr, _IONBF, 0);
        }
        try {
            (void)run(kTwo, {"true"});
        } catch (const std::exception&) {
            ::_exit(9);  // main() would report it
        }
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status)) << "aborted";
    expect_baseline();
}

// What a killed daemon left goes back first; what wq-tuned keeps is not taken for the kernel's.
TEST_F(AbCommand, WhatWqTunedLeftIsNotTakenForTheKernels) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    const std::string scope = test::wq_path("kcryptd-1"),
                      strict = test::wq_path("kcryptd-1", "affinity_strict");
    OwnedStore store(tree_.path("run/wq-tuned/owned.json"));
    store.put(
        {"kcryptd-1", inode, {Knob::scope, "default", {"numa"}}, Attribute{Knob::strict, "0"}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.write(scope, "numa\n");
    const auto ran = ab(kTwo, {"true"});
    EXPECT_EQ(ran.code, kOk);
    EXPECT_THAT(ran.err, HasSubstr("kcryptd-1: back to 'default'"));
    expect_baseline();

    // The word and the strictness that wq-tuned left: first without on_exit = "keep", then with it.
    store.put(
        {"kcryptd-1", inode, {Knob::scope, "default", {"default", "numa"}}, Attribute{Knob::strict, "0"}});
    ASSERT_TRUE(store.save());
    tree_.write(scope, "numa\n");
    EXPECT_EQ(ab(kTwo, {"true"}).code, kOk);
    expect_baseline();
    ASSERT_TRUE(set_mark(Paths{tree_.root()}, Mark::keep, true));
    for (const bool word : {true, false}) {
        Owned left{"kcryptd-1", inode, {Knob::scope, "default"}, Attribute{Knob::strict, "0"}};
        (word ? left.main : *left.strict).claim = {word ? "numa" : "1"};
        store.put(left);
        ASSERT_TRUE(store.save());
        tree_.write(word ? scope : strict, word ? "numa\n" : "1\n");
        const auto kept = ab(kTwo, {"touch", tree_.path("ran")});
        EXPECT_EQ(kept.code, kFailure);
        EXPECT_THAT(kept.err, HasSubstr("a setting that wq-tuned left"));
        EXPECT_FALSE(tree_.exists("ran"));
        ASSERT_EQ(on_disk().size(), 1U);
        EXPECT_EQ(on_disk().at("kcryptd-1").strict->baseline, "0");
        tree_.write(word ? scope : strict, word ? "default\n" : "0\n");  // as `undo` recommends
        EXPECT_EQ(ab(kTwo, {"true"}).code, kOk);
        EXPECT_EQ(on_disk().size(), 1U) << "it is for the daemon to drop";
    }
}

TEST_F(AbCommand, ARoundUnderOtherCpusIsDroppedAndToldOf) {
    const std::string online = tree_.path("sys/devices/system/cpu/online");
    const auto ran = ab(kTwo, {"sh", "-c",
                               "[ -e '" + tree_.path("once") + "' ] || echo 0-6 >'" + online + "'; touch '" +
                                   tree_.path("once") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("\nDropped: 1 round (CPUs came or went).\n"));
    expect_baseline();
}

TEST_F(AbCommand, ARecordThatIsBrokenMeanwhileIsNoSilentLoss) {
    const auto ran = ab(kTwo, {"sh", "-c", "echo nonsense >'" + tree_.path(kLeft) + "'"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("lab.json: not JSON"));
    EXPECT_NE(word(), "default");
    EXPECT_EQ(tree_.read(kLeft), "nonsense\n") << "kept for people to look at";
    EXPECT_EQ(ab(kTwo, {"touch", tree_.path("ran")}).code, kFailure);
    EXPECT_FALSE(tree_.exists("ran"));
}

// Values with commas are given one by one.
TEST_F(AbCommand, ComparesValuesOfAFile) {
    const std::string other = "sys/block/sda/queue/other";
    const auto ran =
        ab({"--file", "/" + other, "--values", "f,0", "--values", "0,f", "--pairs", "3", "--json"},
           {"sh", "-c", "cat '" + tree_.path(other) + "' >>'" + tree_.path("runs") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["target"], "/" + other);
    EXPECT_EQ(report["rounds"], 3);
    EXPECT_EQ(report["arms"][0]["arm"], "f,0");
    EXPECT_EQ(report["arms"][1]["arm"], "0,f");
    EXPECT_TRUE(report["arms"][1]["pools"].is_null());
    EXPECT_EQ(tree_.read("runs").size(), 18U);
    EXPECT_EQ(tree_.read(other), "none");
    expect_baseline();
}

TEST_F(AbCommand, RestorePutsEverythingBack) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    OwnedStore store(tree_.path("run/wq-tuned/owned.json"));
    store.put(
        {"kcryptd-1", inode, {Knob::scope, "default", {"numa"}}, Attribute{Knob::strict, "0"}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.write(test::wq_path("kcryptd-1"), "numa\n");
    tree_.write(kFile, "32");
    OwnedStore left(tree_.path(kLeft), OwnedStore::Of::lab);
    left.put({tree_.path(kFile), 0, {Knob::value, "64\n", {"32\n"}}});
    ASSERT_TRUE(left.save());
    tree_.remove(test::wq_path("kcryptd-1"));
    tree_.add(test::Dir(test::wq_path("kcryptd-1")));  // can be neither read nor written
    const auto stays = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(stays.code, kFailure);
    EXPECT_THAT(stays.err, HasSubstr("back to '64'"));
    EXPECT_THAT(stays.err,
                HasSubstr("wq-tunectl: settings or devices of an earlier ab, bench or comparison could "
                          "not be restored or removed\n"));
    EXPECT_FALSE(tree_.exists("ran"));
    EXPECT_EQ(on_disk().size(), 1U);
    EXPECT_EQ(ab({"--restore"}, {}).code, kFailure);
    tree_.remove(test::wq_path("kcryptd-1"));
    tree_.add(test::File(test::wq_path("kcryptd-1"), "numa\n"));
    EXPECT_EQ(ab({"--restore"}, {}).code, kOk);
    expect_baseline();
}

// ---- it is killed, and its guardian restores the settings

// After kill -9, during a run or a command of an arm, the guardian restores everything.
class AbKills : public AbCommand, public testing::WithParamInterface<const char*> {};

TEST_P(AbKills, FilesAndCommandsAreBackAfterwards) {
    const std::string set = tree_.path("set"), at = GetParam();
    // Creates the file "last" at the second call, and hangs.
    const std::string hang = "echo >>'" + tree_.path("n") + "'; [ $(wc -l <'" + tree_.path("n") +
                             "') != 2 ] || { touch '" + tree_.path("last") + "'; sleep 300; }; ";
    std::vector<std::string> words = kValues;
    if (at != "file")
        words = {"--arm",  "on",
                 "--do",   "touch '" + set + "'; " + (at == "do" ? hang : ""),
                 "--undo", (at == "undo" ? hang : "") + "rm -f '" + set + "'"};
    const pid_t pid = ::fork();
    if (pid == 0) {
        (void)!::freopen("/dev/null", "w", stderr);
        ::_exit(run(words, {"sh", "-c", at == "do" || at == "undo" ? "true" : hang}));
    }
    for (unsigned i = 0; i < 3000 && !tree_.exists("last"); i++) ::usleep(10'000);
    ASSERT_TRUE(tree_.exists("last"));
    EXPECT_TRUE(tree_.exists(kLeft) || at == "run");
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_TRUE(test::is_let_go(tree_.root())) << "the guardian lives";
    expect_baseline();
}

INSTANTIATE_TEST_SUITE_P(At, AbKills, testing::Values("file", "run", "do", "undo"));

// After kill -9 or another signal during the Nth run, the guardian restores everything.
class AbKilled : public AbCommand, public testing::WithParamInterface<std::tuple<int, int>> {};

TEST_P(AbKilled, TheTreeHoldsTheBaselineAfterwards) {
    const auto [signal, nth] = GetParam();
    const std::string runs = tree_.path("runs");
    const std::string script = says_scope_ + "; [ $(wc -l <'" + runs + "') -lt " + std::to_string(nth) +
                               " ] || { sleep 300 & echo $! >'" + tree_.path("last") + "'; wait; }";
    const pid_t pid = ::fork();
    if (pid == 0) {
        (void)!::freopen("/dev/null", "w", stderr);
        ::_exit(run(kTwo, {"sh", "-c", script}));
    }
    const auto eventually = [](const std::function<bool()>& so) {
        for (unsigned i = 0; i < 3000 && !so(); i++) ::usleep(10'000);
        return so();
    };
    ASSERT_TRUE(eventually([&] { return tree_.exists("last") && !tree_.read("last").empty(); }));
    EXPECT_NE(word(), "default");
    EXPECT_THAT(tree_.read(kLeft), testing::HasSubstr("\"baseline\": \"default"));
    ASSERT_EQ(::kill(pid, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (signal == SIGKILL)
        EXPECT_TRUE(WIFSIGNALED(status));
    else
        EXPECT_EQ(WEXITSTATUS(status), kFailure);
    EXPECT_TRUE(test::is_let_go(tree_.root())) << "the guardian lives";
    expect_baseline();
    // The child of the command.
    const std::string command = "/proc/" + std::to_string(std::stol(tree_.read("last"))) + "/stat";
    EXPECT_TRUE(eventually([&] {
        const auto stat = read_file(command);
        return !stat || stat->find(") Z") != std::string::npos;
    })) << "the command lives";
}

INSTANTIATE_TEST_SUITE_P(Signals, AbKilled,
                         testing::Combine(testing::Values(SIGKILL, SIGTERM, SIGINT, SIGHUP),
                                          testing::Values(1, 2, 5)));

}  // namespace
}  // namespace wq::ctl
