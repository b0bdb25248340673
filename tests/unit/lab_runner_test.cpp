// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of `ab` that do not depend on the arms: command line, started processes, count of kworkers.
#include "ctl/lab/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "ab_rig.h"

namespace wq::ctl {
namespace {

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
    const test::TempTree tree(test::ab_tree());
    EXPECT_EQ(lab::count_kworkers(Paths{tree.root()}), 2U);
    EXPECT_EQ(lab::count_kworkers(Paths{tree.path("nowhere")}), 0U);
}

TEST(Guardian, TellsHowItWentAndThatItWasKilled) {
    for (const bool back : {true, false}) {
        lab::Guardian guardian;
        ASSERT_TRUE(guardian.start([&] { return back; }));
        const auto finished = guardian.finish();
        ASSERT_TRUE(finished);
        EXPECT_EQ(*finished, back);
    }
    lab::Guardian killed;
    ASSERT_TRUE(killed.start([] { return ::raise(SIGKILL) == 0; }));
    EXPECT_FALSE(killed.finish());
}

TEST(Processes, NobodyListeningDoesNotEndIt) {
    const lab::Processes processes;
    ::raise(SIGPIPE);
    const auto run = processes.run({"sh", "-c", "kill -PIPE $$"}, lab::Output::drop);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->failure, "killed by SIGPIPE") << "the command must not inherit our ignored SIGPIPE";
}

TEST(Processes, ABackgroundProcessDoesNotHoldItUp) {
    const lab::Processes processes;
    const auto run = processes.run({"sh", "-c", "echo done; sleep 300 & echo $!"}, lab::Output::capture);
    ASSERT_TRUE(run);
    EXPECT_THAT(run->output, testing::StartsWith("done\n"));
    EXPECT_GT(run->wall.count(), 0);
    EXPECT_LT(run->wall, std::chrono::minutes(2)) << "it waited for the background sleep of 300 s";
    ::kill(static_cast<pid_t>(std::stol(run->output.substr(5))), SIGKILL);
}

TEST(Processes, IgnoredHangUpsStayIgnored) {
    ::signal(SIGHUP, SIG_IGN);
    {
        const lab::Processes processes;
        ::raise(SIGHUP);
        EXPECT_TRUE(processes.run({"true"}, lab::Output::drop));
    }
    ::signal(SIGHUP, SIG_DFL);
    const lab::Processes processes;
    ::raise(SIGHUP);
    const auto run = processes.run({"true"}, lab::Output::drop);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().text, "interrupted by SIGHUP");
}

TEST(Shell, TellsTheExitCodeAndWhatWasPrinted) {
    const lab::Processes processes;
    EXPECT_TRUE(processes.shell("exit 0"));
    for (const auto& [command, says] : {std::pair{"echo one; echo two >&2; exit 7",
                                                  "'echo one; echo two >&2; exit 7': exit code 7: one; two"},
                                        {"false", "'false': exit code 1"},
                                        {"kill -KILL $$", "'kill -KILL $$': killed by SIGKILL"}})
        EXPECT_EQ(processes.shell(command).error().text, says);
}

TEST(Shell, ASignalEndsItUnlessItMustNot) {
    const lab::Processes processes;
    ::raise(SIGTERM);
    EXPECT_TRUE(processes.shell("true", true));
    EXPECT_EQ(processes.shell("true").error().code, EINTR);
}

// As if the signal had come between fork() and setpgid().
TEST(Shell, ASignalToTheWholeGroupDoesNotEndWhatMustNotEnd) {
    const lab::Processes processes;
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::raise(SIGTERM);
        processes.interrupts.undo(true);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
}

TEST(Shell, TheCommandHasTheSignalsThatWeHad) {
    const lab::Processes processes;
    for (const bool to_the_end : {false, true})
        EXPECT_TRUE(processes.shell("grep -q '^SigBlk:.0*$' /proc/self/status", to_the_end));
}

}  // namespace
}  // namespace wq::ctl
