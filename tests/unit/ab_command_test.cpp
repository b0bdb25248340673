// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/ab_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ctl/ab/guardian.h"
#include "ctl/ab/kworkers.h"
#include "ctl/ab/left_store.h"
#include "ctl/ab/runner.h"
#include "engine/baseline.h"
#include "engine/lock.h"
#include "fake_machine.h"
#include "judge/recording.h"
#include "kernel/workqueue_fs.h"
#include "run_command.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::Dir;
using test::File;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<test::Entry> entries_of_tree() {
    auto out = test::kernel_tree({test::workqueue("kcryptd-1"), test::workqueue("one", {.max_active = "1"})});
    out.push_back(test::cpu_tree({.cores = 4, .threads = 2}));
    out.push_back(Dir("proc/1", {File("comm", "kworker/u16:0-events\n")}));
    out.push_back(Dir("proc/2", {File("comm", "kworker/2:0\n")}));
    out.push_back(Dir("proc/30", {File("comm", "kworker/u17:1\n")}));
    out.push_back(Dir("sys/block/sda/queue", {File("nr_requests", "64"), File("other", "none")}));
    out.push_back(File("etc/nr_requests", "64"));
    return out;
}

struct Ran {
    int code = -1;
    std::string out, err;
};

constexpr const char* kFile = "sys/block/sda/queue/nr_requests";

class AbCommand : public testing::Test {
  protected:
    Ran ab(std::vector<std::string> words, const std::vector<std::string>& command) {
        Ran ran;
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        ran.code = run(std::move(words), command);
        ran.out = testing::internal::GetCapturedStdout();
        ran.err = testing::internal::GetCapturedStderr();
        return ran;
    }
    int run(std::vector<std::string> words, const std::vector<std::string>& command) const {
        return test::run_command(set_up_ab, std::move(words), {tree_.root(), command});
    }
    [[nodiscard]] std::string word() const {
        const auto file = parse_scope_file(tree_.read(test::wq_path("kcryptd-1")));
        return file ? file->word : "?";
    }
    [[nodiscard]] std::map<std::string, BaselineEntry> on_disk() const {
        BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
        EXPECT_TRUE(store.load());
        return store.entries();
    }
    void expect_baseline() const {
        EXPECT_EQ(word(), "default");
        EXPECT_THAT(on_disk(), IsEmpty());
        EXPECT_FALSE(tree_.exists("run/wq-tuned/ab.json"));
        EXPECT_EQ(tree_.read(kFile), "64");
        EXPECT_FALSE(tree_.exists("set"));
        EXPECT_TRUE(take_lock(Paths{tree_.root()})) << "somebody is left";
    }
    // Arms of commands: "set" is there while the arm `on` is in place.
    [[nodiscard]] std::vector<std::string> on(const std::string& undo = "") const {
        const std::string set = tree_.path("set");
        return {"--arm",   "on",
                "--do",    "touch '" + set + "'",
                "--undo",  undo.empty() ? "rm '" + set + "'" : undo,
                "--pairs", "3"};
    }

    test::TempTree tree_{entries_of_tree()};
    // Says what the target holds while it runs, one line a run.
    const std::string says_scope_ =
        "cat '" + tree_.path(test::wq_path("kcryptd-1")) + "' >>'" + tree_.path("runs") + "'";
};

const std::vector<std::string> kValues{
    "--file", "/sys/block/sda/queue/nr_requests", "--values", "16,32", "--pairs", "3"};
const std::vector<std::string> kTwo{"--target", "kcryptd-1", "--arms", "cache,smt", "--pairs", "3"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

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
    EXPECT_FALSE(tree_.exists("run/wq-tuned/baseline.json.new"));
}

TEST_F(AbCommand, WarmUpsRunUnderTheBaselineArmFirst) {
    EXPECT_EQ(ab(with(kTwo, {"--warmup", "2"}), {"sh", "-c", says_scope_}).code, kOk);
    EXPECT_THAT(tree_.read("runs"), StartsWith("cache\ncache\n"));
}

TEST_F(AbCommand, TakesANumberOutOfTheOutput) {
    const std::string script =
        "grep -q smt '" + tree_.path(test::wq_path("kcryptd-1")) +
        "' && echo '{\"write\":\n {\"bw\" : 200}}' || echo '{\"write\":\n {\"bw\" : 100}}'";
    const std::vector<std::string> words{"--metric",           R"x((?s)"write".*?"bw" : (\d+))x",
                                         "--higher-is-better", "--json",
                                         "--export",           tree_.path("pairs.csv")};
    const auto ran = ab(with({"--target", "kcryptd-1", "--arms", "cache,smt"}, words), {"sh", "-c", script});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["arms"][1]["verdict"], "improved");
    EXPECT_NEAR(report["arms"][1]["effect_percent"].get<double>(), -50, 1e-9);
    EXPECT_EQ(report["arms"][1]["mean"], 200);
    const auto recorded = read_recording(*read_file(tree_.path("pairs.csv")));
    ASSERT_TRUE(recorded) << recorded.error().reason;
    ASSERT_EQ(recorded->size(), 1U);
    Trial trial(JudgeSettings{}, recorded->front().counters);
    std::optional<TrialVerdict> verdict;
    for (const WindowPair& pair : recorded->front().pairs) verdict = trial.add(pair);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->outcome, TrialOutcome::improved);
}

TEST_F(AbCommand, PrintsATableForPeople) {
    const auto ran = ab(kTwo, {"true"});
    EXPECT_EQ(ran.code, kOk);
    EXPECT_THAT(ran.out, StartsWith("ARM    POOLS  KWORKERS  RUNS  MEAN"));
    EXPECT_THAT(ran.out, HasSubstr("\nsmt    4      2         3     "));
    EXPECT_THAT(ran.err, StartsWith("round 1 of 3\nround 2 of 3; smt "));
}

TEST_F(AbCommand, SweepsAllDistinctScopes) {
    const auto ran = ab({"--target", "kcryptd-1", "--sweep", "--pairs", "1", "--json"}, {"true"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    std::string names;
    for (const json& arm : report["arms"]) names += arm["arm"].get<std::string>() + " ";
    EXPECT_EQ(names, "cache smt cpu ");
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
        {{"--metric", "bw=(.*)"}, {"echo", "bw=fast"}, "'fast', which is no number"},
        {{"--metric", "bw=(.*)"}, {"echo", "bw=0"}, "only numbers above 0"},
        {{"--metric", "bw=(.*)"}, {"echo", "bw=inf"}, "no number"},
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
    EXPECT_EQ(ab(with(kTwo, {"--ignore-failure"}), {"false"}).code, kOk);
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
    const std::vector<std::string> target{"--target", "kcryptd-1"};
    for (const auto& words : std::vector<std::vector<std::string>>{
             {},
             {"--file", "/sys/a"},
             {"--values", "1,2"},
             {"--file", "/sys/a", "--values", "1"},
             {"--file", "/sys/a", "--values", "1,1"},
             {"--file", "/sys/a", "--values", "1,,2"},
             {"--file", "/sys/a", "--values", "1", "--values", "1"},
             {"--file", "/sys/a", "--values", "1,2", "--target", "one"},
             {"--file", "/sys/a", "--values", "1,2", "--arms", "cache,smt"},
             {"--file", "/sys/a", "--values", "1,2", "--arm", "a", "--do", "a", "--undo", "a"},
             {"--arm", "a"},
             {"--arm", "a", "--do", "a"},
             {"--arm", "a", "--do", "a", "--undo", ""},
             {"--do", "a", "--undo", "a"},
             {"--arm", "a", "--do", "a", "--undo", "a", "--arm", "a", "--do", "b", "--undo", "b"},
             {"--arm", "baseline", "--do", "a", "--undo", "a"},
             {"--arm", "a", "--do", "a", "--undo", "a", "--target", "one"},
             {"--arm", "a", "--do", "a", "--undo", "a", "--sweep"},
             {"--restore"},
             {"--restore", "--target", "one"}})
        EXPECT_EQ(ab(words, command).code, kUsage) << testing::PrintToString(words);
    EXPECT_EQ(ab(target, command).code, kUsage);
    EXPECT_EQ(ab(with(target, {"--arms", "cache,smt", "--sweep"}), command).code, kUsage);
    EXPECT_EQ(ab(with(target, {"--arms", "cache"}), command).code, kUsage);
    EXPECT_EQ(ab(kTwo, {}).code, kUsage);
    EXPECT_EQ(ab(with(kTwo, {"--metric", "no group"}), command).code, kUsage);
    EXPECT_EQ(ab(with(kTwo, {"--metric", "(a)(b)"}), command).code, kUsage);
    EXPECT_EQ(ab(with(kTwo, {"--metric", "(a"}), command).code, kUsage);
    EXPECT_EQ(ab(with(kTwo, {"--higher-is-better"}), command).code, kUsage);
    EXPECT_EQ(ab(with(kTwo, {"--pairs", "0"}), command).code, kUsage);
    EXPECT_FALSE(tree_.exists("ran"));
    expect_baseline();
}

TEST_F(AbCommand, AnExportThatCannotBeIsRefusedBeforeTheCommandRuns) {
    ASSERT_EQ(::mkfifo(tree_.path("fifo").c_str(), 0600), 0);
    ASSERT_EQ(::symlink(tree_.path("elsewhere").c_str(), tree_.path("link").c_str()), 0);
    for (const char* name : {"fifo", "link", "proc", "nowhere/a.csv", "nowhere/", ""}) {
        const auto ran = ab(with(kTwo, {"--export", tree_.path(name)}), {"touch", tree_.path("ran")});
        EXPECT_EQ(ran.code, kFailure) << name;
        EXPECT_THAT(ran.err, StartsWith("wq-tunectl: --export: " + tree_.path(name) + ": "));
    }
    EXPECT_FALSE(tree_.exists("ran"));
    EXPECT_FALSE(tree_.exists("run/wq-tuned/lock")) << "nothing was made";
    struct stat st {};
    ASSERT_EQ(::lstat(tree_.path("fifo").c_str(), &st), 0);
    EXPECT_TRUE(S_ISFIFO(st.st_mode));
}

TEST_F(AbCommand, TheExportOutlivesATerminalThatIsGone) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (FILE* stream : {stdout, stderr}) {
            (void)!::freopen("/dev/full", "w", stream);
            ::setvbuf(stream, nullptr, _IONBF, 0);
        }
        try {
            (void)run(with(kTwo, {"--export", tree_.path("pairs.csv")}), {"true"});
        } catch (const std::exception&) {
            ::_exit(9);  // main()'s to tell
        }
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status)) << "aborted";
    EXPECT_THAT(tree_.read("pairs.csv"), HasSubstr("smt"));
    expect_baseline();
}

TEST_F(AbCommand, ARunningDaemonIsInTheWay) {
    const auto daemon = take_lock(Paths{tree_.root()});
    ASSERT_TRUE(daemon);
    const auto ran = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_EQ(ran.err,
              "wq-tunectl: wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first\n");
    EXPECT_FALSE(tree_.exists("ran"));
}

TEST_F(AbCommand, WhatACutOffRunLeftGoesBackFirst) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
    store.put({"kcryptd-1", inode, "default", false, {"numa"}, {}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.write(test::wq_path("kcryptd-1"), "numa\n");
    const auto ran = ab(kTwo, {"true"});
    EXPECT_EQ(ran.code, kOk);
    EXPECT_THAT(ran.err, HasSubstr("kcryptd-1: back to 'default'"));
    expect_baseline();

    store.put({"kcryptd-1", inode, "default", false, {"numa"}, {}});
    ASSERT_TRUE(store.save());
    tree_.write(test::wq_path("kcryptd-1"), "numa\n");
    const auto kept = ab(kTwo, {"true"});
    EXPECT_EQ(kept.code, kFailure);
    EXPECT_THAT(kept.err, HasSubstr("a setting that wq-tuned left"));
    EXPECT_EQ(on_disk().size(), 1U);
    EXPECT_EQ(word(), "numa");
    tree_.write(test::wq_path("kcryptd-1"), "default\n");  // as `undo` says
    EXPECT_EQ(ab(kTwo, {"true"}).code, kOk);
    expect_baseline();
}

// The word is the baseline; the strictness is what wq-tuned left there.
TEST_F(AbCommand, AStrictnessThatWqTunedLeftIsNotTakenForTheKernels) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
    store.put({"kcryptd-1", inode, "default", false, {}, true});
    ASSERT_TRUE(store.save());
    const std::string file = test::wq_path("kcryptd-1", "affinity_strict");
    tree_.write(file, "1\n");
    const auto ran = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("a setting that wq-tuned left"));
    EXPECT_FALSE(tree_.exists("ran"));
    ASSERT_EQ(on_disk().size(), 1U);
    EXPECT_EQ(on_disk().at("kcryptd-1").strict, false);
    tree_.write(file, "0\n");  // as `undo` says
    EXPECT_EQ(ab(kTwo, {"true"}).code, kOk);
    expect_baseline();
}

TEST_F(AbCommand, ASomebodyElsesWordEndsItAndStays) {
    const auto ran = ab(kTwo, {"sh", "-c", "echo numa >'" + tree_.path(test::wq_path("kcryptd-1")) + "'"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("an external writer wrote 'numa'"));
    EXPECT_EQ(word(), "numa");
    EXPECT_THAT(on_disk(), IsEmpty());
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

TEST_F(AbCommand, ABaselineThatIsBrokenMeanwhileIsNoSilentLoss) {
    const std::string baseline = tree_.path("run/wq-tuned/baseline.json");
    const auto ran = ab(kTwo, {"sh", "-c", "echo nonsense >'" + baseline + "'"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: kcryptd-1: not put back\n"));
    EXPECT_NE(word(), "default");
    EXPECT_EQ(tree_.read("run/wq-tuned/baseline.json"), "nonsense\n") << "kept for people to look at";
}

TEST_F(AbCommand, NothingRunsWhileAnEarlierTrialIsStillThere) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
    store.put({"kcryptd-1", inode, "default", false, {"numa"}, {}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.remove(test::wq_path("kcryptd-1"));
    tree_.add(Dir(test::wq_path("kcryptd-1")));  // neither read nor written
    const auto ran = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: what was left of an earlier trial is still there\n"));
    EXPECT_FALSE(tree_.exists("ran"));
    EXPECT_EQ(on_disk().size(), 1U);
}

TEST_F(AbCommand, ComparesValuesOfAFile) {
    const auto ran = ab(with(kValues, {"--json"}),
                        {"sh", "-c", "cat '" + tree_.path(kFile) + "' >>'" + tree_.path("runs") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_EQ(report["target"], "/sys/block/sda/queue/nr_requests");
    EXPECT_EQ(report["rounds"], 3);
    EXPECT_EQ(report["arms"][0]["arm"], "16");
    EXPECT_EQ(report["arms"][1]["arm"], "32");
    EXPECT_TRUE(report["arms"][1]["pools"].is_null());
    EXPECT_EQ(tree_.read("runs").size(), 12U);
    expect_baseline();
}

TEST_F(AbCommand, ValuesWithCommasAreGivenOneByOne) {
    const auto ran = ab({"--file", "/sys/block/sda/queue/other", "--values", "ff,0", "--values", "0,ff",
                         "--values", "1", "--pairs", "1", "--json", "--export", tree_.path("pairs.csv")},
                        {"true"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    ASSERT_EQ(report["arms"].size(), 3U);
    EXPECT_EQ(report["arms"][1]["arm"], "0,ff");
    EXPECT_TRUE(read_recording(tree_.read("pairs.csv"))) << tree_.read("pairs.csv");
    EXPECT_EQ(tree_.read("sys/block/sda/queue/other"), "none");
}

TEST_F(AbCommand, AFileOutsideOfSysAndProcIsRefused) {
    const auto ran = ab({"--file", "/etc/nr_requests", "--values", "1,2"}, {"touch", tree_.path("ran")});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, StartsWith("wq-tunectl: /etc/nr_requests: is outside of /sys and /proc"));
    EXPECT_FALSE(tree_.exists("ran"));
    EXPECT_FALSE(tree_.exists("run/wq-tuned/lock")) << "nothing was made";
}

TEST_F(AbCommand, SomebodyElsesValueEndsItAndStays) {
    const auto ran = ab(kValues, {"sh", "-c", "printf 99 >'" + tree_.path(kFile) + "'"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("an external writer wrote '99'"));
    EXPECT_EQ(tree_.read(kFile), "99");
    EXPECT_FALSE(tree_.exists("run/wq-tuned/ab.json"));
}

TEST_F(AbCommand, ComparesCommands) {
    const auto ran =
        ab(with(on(), {"--json"}),
           {"sh", "-c", "[ -e '" + tree_.path("set") + "' ]; echo $? >>'" + tree_.path("runs") + "'"});
    EXPECT_EQ(ran.code, kOk) << ran.err;
    const json report = json::parse(ran.out);
    EXPECT_TRUE(report["target"].is_null());
    EXPECT_EQ(report["arms"][0]["arm"], "baseline");
    EXPECT_EQ(report["arms"][1]["arm"], "on");
    const std::string runs = tree_.read("runs");
    EXPECT_EQ(std::count(runs.begin(), runs.end(), '0'), 3);
    EXPECT_EQ(std::count(runs.begin(), runs.end(), '1'), 3);
    expect_baseline();
}

TEST_F(AbCommand, ACommandThatFailsEndsItAndIsUndone) {
    const std::string set = tree_.path("set");
    const auto ran = ab({"--arm", "on", "--do", "touch '" + set + "'; echo no such device; exit 3", "--undo",
                         "rm '" + set + "'"},
                        {"true"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("exit code 3: no such device\n"));
    expect_baseline();
}

TEST_F(AbCommand, AnUndoThatFailsIsShoutedAboutAndLeftForRestore) {
    const std::string set = tree_.path("set");
    const std::string undo =
        "[ -e '" + tree_.path("repaired") + "' ] || { echo busy; exit 4; }; rm '" + set + "'";
    const auto ran = ab(on(undo), {"true"});
    EXPECT_EQ(ran.code, kFailure);
    EXPECT_THAT(ran.err, HasSubstr("wq-tunectl: arm on IS NOT UNDONE: '" + undo +
                                   "': exit code 4: busy; "
                                   "`wq-tunectl ab --restore` tries again\n"));
    EXPECT_TRUE(tree_.exists("set"));
    const auto next = ab(kTwo, {"touch", tree_.path("ran")});
    EXPECT_EQ(next.code, kFailure);
    EXPECT_THAT(next.err, HasSubstr("arm on: its undo failed; `wq-tunectl ab --restore` runs it again\n"));
    EXPECT_THAT(next.err, HasSubstr("what was left of an earlier trial is still there"));
    EXPECT_FALSE(tree_.exists("ran"));
    const auto again = ab({"--restore"}, {});
    EXPECT_EQ(again.code, kFailure);
    EXPECT_THAT(again.err, HasSubstr("IS NOT UNDONE"));
    tree_.add(File("repaired", ""));
    const auto restored = ab({"--restore"}, {});
    EXPECT_EQ(restored.code, kOk) << restored.err;
    EXPECT_THAT(restored.err, HasSubstr("arm on: undone"));
    expect_baseline();
    EXPECT_EQ(ab({"--restore"}, {}).code, kOk) << "nothing is left";
}

TEST_F(AbCommand, RestorePutsScopesAndFilesBackToo) {
    const auto inode = WorkqueueFs(Paths{tree_.root()}).read("kcryptd-1")->inode;
    BaselineStore store(tree_.path("run/wq-tuned/baseline.json"));
    store.put({"kcryptd-1", inode, "default", false, {"numa"}, {}, Holder::slot});
    ASSERT_TRUE(store.save());
    tree_.write(test::wq_path("kcryptd-1"), "numa\n");
    tree_.write(kFile, "32");
    ASSERT_TRUE(ab::LeftStore(tree_.path("run/wq-tuned/ab.json"))
                    .save(ab::LeftFile{tree_.path(kFile), "64", {"32"}, false}));
    const auto restored = ab({"--restore"}, {});
    EXPECT_EQ(restored.code, kOk) << restored.err;
    EXPECT_THAT(restored.err, HasSubstr("back to '64'"));
    expect_baseline();
}

// What kill -9 leaves, at each run and in the middle of commands: nothing, once the guardian is done.
class AbKills : public AbCommand, public testing::WithParamInterface<const char*> {};

TEST_P(AbKills, FilesAndCommandsAreBackAfterwards) {
    const std::string set = tree_.path("set"), at = GetParam();
    // Leaves a mark at the second call, and hangs.
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
    EXPECT_TRUE(tree_.exists("run/wq-tuned/ab.json") || at == "run");
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_TRUE(take_lock(Paths{tree_.root()})) << "the guardian lives";
    expect_baseline();
}

INSTANTIATE_TEST_SUITE_P(At, AbKills, testing::Values("file", "run", "do", "undo"));

// What kill -9 and other signals leave, at the Nth run: nothing, once the guardian is done.
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
    EXPECT_EQ(on_disk().at("kcryptd-1").scope, "default");
    ASSERT_EQ(::kill(pid, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (signal == SIGKILL)
        EXPECT_TRUE(WIFSIGNALED(status));
    else
        EXPECT_EQ(WEXITSTATUS(status), kFailure);
    EXPECT_TRUE(take_lock(Paths{tree_.root()})) << "the guardian lives";
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

TEST(CutCommand, TakesWhatFollowsTheDashesOfAb) {
    const auto cut = [](std::vector<std::string> words) {
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        std::vector<std::string> command;
        const int left = cut_command(static_cast<int>(argv.size()), argv.data(), command);
        std::string out = std::to_string(left) + ":";
        for (const std::string& word : command) out += " " + word;
        return out;
    };
    EXPECT_EQ(cut({"wq-tunectl", "ab", "--json", "--", "[a,b]", "--", "plan"}), "3: [a,b] -- plan");
    EXPECT_EQ(cut({"wq-tunectl", "--root", "ab", "ab", "--", "x"}), "4: x");
    EXPECT_EQ(cut({"wq-tunectl", "explain", "--", "ab"}), "4:");
    EXPECT_EQ(cut({"wq-tunectl", "ab", "x"}), "3:");
    EXPECT_EQ(cut({"wq-tunectl"}), "1:");
}

TEST(CountKworkers, OfUnboundPools) {
    const test::TempTree tree(entries_of_tree());
    EXPECT_EQ(ab::count_kworkers(Paths{tree.root()}), 2U);
    EXPECT_EQ(ab::count_kworkers(Paths{tree.path("nowhere")}), 0U);
}

TEST(Guardian, TellsHowItWentAndThatItWasKilled) {
    for (const bool back : {true, false}) {
        auto guardian = ab::Guardian::start([&] { return back; });
        ASSERT_TRUE(guardian);
        const auto finished = guardian->finish();
        ASSERT_TRUE(finished);
        EXPECT_EQ(*finished, back);
    }
    auto killed = ab::Guardian::start([] { return ::raise(SIGKILL) == 0; });
    ASSERT_TRUE(killed);
    EXPECT_FALSE(killed->finish());
}

TEST(RunCommand, NobodyListeningDoesNotEndIt) {
    const ab::Interrupts interrupts;
    ::raise(SIGPIPE);
    const auto run = ab::run_command({"sh", "-c", "kill -PIPE $$"}, ab::Output::drop, interrupts);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->failure, "killed by SIGPIPE") << "the command has what we had";
}

TEST(RunCommand, ABackgroundProcessDoesNotHoldItUp) {
    const ab::Interrupts interrupts;
    const auto run =
        ab::run_command({"sh", "-c", "echo done; sleep 300 & echo $!"}, ab::Output::capture, interrupts);
    ASSERT_TRUE(run);
    EXPECT_THAT(run->output, StartsWith("done\n"));
    EXPECT_GT(run->wall.count(), 0);
    EXPECT_LT(run->wall, std::chrono::minutes(2)) << "of the five that it sleeps";
    ::kill(static_cast<pid_t>(std::stol(run->output.substr(5))), SIGKILL);
}

TEST(RunCommand, IgnoredHangUpsStayIgnored) {
    ::signal(SIGHUP, SIG_IGN);
    {
        const ab::Interrupts interrupts;
        ::raise(SIGHUP);
        EXPECT_TRUE(ab::run_command({"true"}, ab::Output::drop, interrupts));
    }
    ::signal(SIGHUP, SIG_DFL);
    const ab::Interrupts interrupts;
    ::raise(SIGHUP);
    const auto run = ab::run_command({"true"}, ab::Output::drop, interrupts);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().text, "interrupted by SIGHUP");
}

}  // namespace
}  // namespace wq::ctl
