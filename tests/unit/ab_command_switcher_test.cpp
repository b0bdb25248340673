// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/file_switcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>

#include "ctl/lab/restore_left.h"
#include "fake_log.h"
#include "temp_tree.h"

namespace wq::ab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CommandSwitcherTest : public testing::Test {
  protected:
    CommandSwitcher switcher(std::vector<CommandArm> arms) {
        return {store_, std::move(arms), shell_, shell_, [this] { return signal_; }};
    }
    std::optional<LeftArm> on_disk() {
        const auto left = store_.load();
        EXPECT_TRUE(left);
        return *left ? std::optional(std::get<LeftArm>(**left)) : std::nullopt;
    }
    bool put_back(bool again = false) { return restore_left(files_, store_, shell_, log_, again); }

    test::TempTree tree_;
    LeftStore store_{tree_.path("ab.json")};
    KernelValueFiles files_;
    test::FakeLog log_;
    std::vector<std::string> ran_;
    std::string fails_;  // the command that fails
    Status signal_;      // received during a command
    const Shell shell_ = [this](const std::string& command) {
        ran_.push_back(command);
        return command == fails_ ? Status(fail("'" + command + "': exit code 3: no such thing")) : Status{};
    };
};

const std::vector<CommandArm> kBaselineAndOne{{"baseline", "", ""}, {"fast", "do", "undo"}};

TEST_F(CommandSwitcherTest, AnArmIsUndoneBeforeTheNextBegins) {
    auto s = switcher({{"one", "do 1", "undo 1"}, {"two", "do 2", "undo 2"}});
    ASSERT_TRUE(s.begin());
    for (const unsigned arm : {0U, 1U, 1U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(ran_, ElementsAre("do 1", "undo 1", "do 2", "undo 2", "do 2"));
    EXPECT_EQ(on_disk()->undo, "undo 2");
    EXPECT_TRUE(put_back());
    EXPECT_EQ(ran_.back(), "undo 2");
    EXPECT_FALSE(on_disk());
}

TEST_F(CommandSwitcherTest, NothingIsDoneForTheBaseline) {
    auto s = switcher(kBaselineAndOne);
    for (const unsigned arm : {0U, 1U, 0U, 0U}) ASSERT_TRUE(s.to(arm));
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
    EXPECT_FALSE(on_disk());
}

TEST_F(CommandSwitcherTest, TheUndoIsOnDiskBeforeTheCommandRuns) {
    std::optional<LeftArm> seen;
    CommandSwitcher s(
        store_, kBaselineAndOne,
        [&](const std::string&) {
            seen = on_disk();
            return Status{};
        },
        shell_, [] { return Status{}; });
    ASSERT_TRUE(s.to(1));
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->name, "fast");
    EXPECT_EQ(seen->undo, "undo");
    EXPECT_FALSE(seen->failed);
}

TEST_F(CommandSwitcherTest, AfterASignalDuringAnUndoNothingIsUndoneThatDidNotRun) {
    auto s = switcher(kBaselineAndOne);
    ASSERT_TRUE(s.to(1));
    signal_ = fail("interrupted by SIGINT", EINTR);
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().code, EINTR);
    EXPECT_FALSE(on_disk());
    EXPECT_TRUE(put_back());
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
}

TEST_F(CommandSwitcherTest, AFailedCommandIsUndone) {
    fails_ = "do";
    auto s = switcher(kBaselineAndOne);
    const auto to = s.to(1);
    ASSERT_FALSE(to);
    EXPECT_EQ(to.error().text, "arm fast: 'do': exit code 3: no such thing");
    EXPECT_TRUE(put_back());
    EXPECT_THAT(ran_, ElementsAre("do", "undo"));
}

TEST_F(CommandSwitcherTest, AFailedUndoIsLeftOnDiskForRestore) {
    fails_ = "undo";
    auto s = switcher(kBaselineAndOne);
    ASSERT_TRUE(s.to(1));
    const auto to = s.to(0);
    ASSERT_FALSE(to);
    EXPECT_EQ(
        to.error().text,
        "arm fast IS NOT UNDONE: 'undo': exit code 3: no such thing; `wq-tunectl ab --restore` tries again");
    ASSERT_TRUE(on_disk());
    EXPECT_TRUE(on_disk()->failed);
    ran_.clear();
    EXPECT_FALSE(put_back()) << "the guardian";
    EXPECT_THAT(ran_, IsEmpty()) << "it does not fail twice by itself";
    EXPECT_FALSE(put_back(true));
    EXPECT_THAT(ran_, ElementsAre("undo"));
    EXPECT_THAT(log_.lines.back().text, HasSubstr("IS NOT UNDONE"));
    EXPECT_EQ(log_.at_least(LOG_ERR), 1U);
    fails_.clear();
    EXPECT_TRUE(put_back(true));
    EXPECT_FALSE(on_disk());
}

class RunShell : public testing::Test {
  protected:
    Interrupts interrupts_;
    Status run(const std::string& command) { return run_shell(command, interrupts_, nullptr); }
};

TEST_F(RunShell, TellsTheExitCodeAndWhatWasPrinted) {
    EXPECT_TRUE(run("exit 0"));
    const auto failed = run("echo one; echo two >&2; exit 7");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().text, "'echo one; echo two >&2; exit 7': exit code 7: one; two");
    const auto silent = run("false");
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().text, "'false': exit code 1");
    const auto killed = run("kill -KILL $$");
    ASSERT_FALSE(killed);
    EXPECT_THAT(killed.error().text, HasSubstr("killed by SIGKILL"));
}

TEST_F(RunShell, ASignalEndsItUnlessItMustNot) {
    ::raise(SIGTERM);
    EXPECT_TRUE(run_shell("true", interrupts_.none(), nullptr));
    const auto ended = run("true");
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, EINTR);
}

// As if the signal had come between fork() and setpgid().
TEST_F(RunShell, ASignalToTheWholeGroupDoesNotEndWhatMustNotEnd) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::raise(SIGTERM);
        interrupts_.none().undo();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(RunShell, TheCommandHasTheSignalsThatWeHad) {
    const std::string masks = "grep -q '^SigBlk:.0*$' /proc/self/status";
    EXPECT_TRUE(run(masks));
    EXPECT_TRUE(run_shell(masks, interrupts_.none(), nullptr));
}

}  // namespace
}  // namespace wq::ab
