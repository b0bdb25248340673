// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of `ab` that do not depend on the arms: command line, started processes, count of kworkers.
#include "ctl/lab/runner.h"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "ab_rig.h"
#include "ctl/lab/guardian.h"
#include "ctl/lab/session.h"

namespace wq::ctl {
namespace {

using testing::StartsWith;

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
    EXPECT_EQ(run->failure, "killed by SIGPIPE") << "the command must not inherit our ignored SIGPIPE";
}

TEST(RunCommand, ABackgroundProcessDoesNotHoldItUp) {
    const ab::Interrupts interrupts;
    const auto run =
        ab::run_command({"sh", "-c", "echo done; sleep 300 & echo $!"}, ab::Output::capture, interrupts);
    ASSERT_TRUE(run);
    EXPECT_THAT(run->output, StartsWith("done\n"));
    EXPECT_GT(run->wall.count(), 0);
    EXPECT_LT(run->wall, std::chrono::minutes(2)) << "it waited for the background sleep of 300 s";
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
