// SPDX-License-Identifier: LGPL-2.1-or-later
// `ab` is killed, and its guardian restores the settings.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "ab_rig.h"
#include "base/file.h"

namespace wq::ctl {
namespace {

using test::AbCommand;

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
