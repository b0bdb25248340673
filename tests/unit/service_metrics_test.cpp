// SPDX-License-Identifier: LGPL-2.1-or-later
// The daemon's file for node_exporter, from the daemon's start to the restorer.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "owned/writer.h"
#include "service_rig.h"

namespace wq {
namespace {

using test::Daemon;
using test::ServiceTest;

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
    EXPECT_TRUE(shows("wq_tuned_targets{state=\"set\"} 2"));
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

TEST_F(MetricsServiceTest, DoNotOutliveAKill) {
    Daemon daemon(tree_);
    EXPECT_TRUE(shows("wq_tuned_policy_broken 0"));
    EXPECT_EQ(daemon.end(SIGKILL), -SIGKILL);
    EXPECT_TRUE(tree_.exists(kTextfile));
    tree_.write(kPolicy, "[daemon\n");
    EXPECT_TRUE(restore());
    EXPECT_FALSE(tree_.exists(kTextfile)) << "also where the policy does not say any more where it is";
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

}  // namespace
}  // namespace wq
