// SPDX-License-Identifier: LGPL-2.1-or-later
// `wq-tunectl report` on trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "ctl/command.h"
#include "ctl/options.h"
#include "ctl/topology_source.h"
#include "evidence/verdicts.h"
#include "fake_machine.h"
#include "run_command.h"
#include "temp_tree.h"
#include "verdict_files.h"

namespace wq::ctl {
namespace {

using test::cpu_tree;
using test::File;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ReportCommand : public testing::Test {
  protected:
    ReportCommand() {
        for (const auto& entry : test::kernel_tree({test::workqueue("a<b&c")})) tree_.add(entry);
        options_.root = tree_.root();
    }
    int report(const std::string& output) {
        const auto ran = test::captured([&] { return ctl::report(options_, output); });
        out_ = ran.out;
        err_ = ran.err;
        return ran.code;
    }
    void learn() {
        VerdictRecord record;
        record.key = test::key_of("kcryptd-#");
        record.target = "kcryptd-1";
        record.time = 1000;
        record.settings = JudgeSettings{};
        record.standing = {"latency", 2, 0, 0, {}};
        record.differences = {{"latency", false, {0.01, 0.02}}};
        VerdictStore store(Paths{tree_.root()}.verdicts());
        ASSERT_TRUE(test::keep(store, record));
    }

    test::TempTree tree_{cpu_tree({.cores = 4, .threads = 2}), File("proc/sys/kernel/hostname", "a-host\n")};
    Options options_;
    std::string out_, err_;
};

TEST_F(ReportCommand, WritesAFileThatOthersMayRead) {
    learn();
    const std::string file = tree_.path("report.html");
    ASSERT_EQ(report(file), kOk) << err_;
    EXPECT_EQ(out_ + err_, "");
    struct stat st {};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0644U);
    const std::string page = tree_.read("report.html");
    EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("<h1>a-host</h1>"),
                            HasSubstr("a&lt;b&amp;c"), HasSubstr("4 cores"), HasSubstr("kcryptd-1"),
                            HasSubstr("class=\"dots\""), HasSubstr("not asked"), Not(HasSubstr("a<b"))));
}

// Like systemd-analyze plot.
TEST_F(ReportCommand, WithoutAFileItGoesToStdoutButNotToATerminal) {
    const auto all = commands();
    const auto command =
        std::ranges::find_if(all, [](const Command& one) { return std::string(one.name) == "report"; });
    ASSERT_NE(command, all.end());
    const auto run = [&] { return test::run_command(command->set_up, {}, {tree_.root(), {}}); };
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(), kOk);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), StartsWith("<!DOCTYPE html>"));
    int ends[2];
    ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
    const Fd master(ends[0]), before(::dup(STDOUT_FILENO));
    testing::internal::CaptureStderr();
    ::dup2(ends[1], STDOUT_FILENO);
    const int code = run();
    ::dup2(before.get(), STDOUT_FILENO);
    ::close(ends[1]);
    EXPECT_EQ(code, kUsage);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("name a file with -o"));
}

TEST_F(ReportCommand, OfAnotherMachineHasThatOnesHistoryOrNone) {
    learn();
    options_.topology = "fsroot:" + tree_.root();
    options_.root.clear();
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("class=\"dots\""), HasSubstr("<h1>a-host</h1>")));
    options_.topology = "synthetic:pack:2 core:3 pu:1";
    options_.root = tree_.root();
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, AllOf(HasSubstr("<h1>synthetic:pack:2 core:3 pu:1</h1>"), Not(HasSubstr("kcryptd-1"))));
}

TEST_F(ReportCommand, UnderAnotherPolicyTheDaemonIsNotAsked) {
    options_.root.clear();
    tree_.write("policy.toml", "");
    options_.topology = "live";
    options_.config = tree_.path("policy.toml");
    if (const auto machine = read_topology("live"); !machine)
        GTEST_SKIP() << "no machine to read here: " << machine.error().text;
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, HasSubstr("not asked: the report is about another machine, kernel or policy"));
    options_.config.reset();
    options_.shard_size = 4;
    ASSERT_EQ(report("-"), kOk) << err_;
    EXPECT_THAT(out_, HasSubstr("not asked"));
}

TEST_F(ReportCommand, ReplacesNothingThatIsNotAFile) {
    tree_.link("link", "nowhere");
    for (const std::string& there : {std::string("/dev/null"), tree_.root(), tree_.path("link")}) {
        EXPECT_EQ(report(there), kFailure) << there;
        EXPECT_THAT(err_, StartsWith("wq-tunectl: " + there + ": exists and is not a regular file"));
    }
    EXPECT_EQ(report(tree_.path("no/such/folder.html")), kFailure);
    EXPECT_THAT(err_, HasSubstr("No such file or directory"));
}

TEST_F(ReportCommand, SaysWhatOfTheHistoryCannotBeRead) {
    learn();
    options_.topology = "fsroot:" + tree_.root();
    tree_.write("var/lib/wq-tuned/verdicts.log", "{}\n");
    EXPECT_EQ(report("-"), kFailure);
    EXPECT_EQ(out_, "") << "no half page";
    EXPECT_THAT(err_, HasSubstr("verdicts.log"));
}

}  // namespace
}  // namespace wq::ctl
