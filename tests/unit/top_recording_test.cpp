// SPDX-License-Identifier: LGPL-2.1-or-later
// `top --replay` shows what `top --record` recorded.
#include "ctl/observe/top_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/observe/top_command.h"
#include "ctl/options.h"
#include "fake_monitor.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using test::TempTree;
using testing::EndsWith;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

// Five samples with all kinds of workqueues. The first workqueue has new pools from the third sample on.
FakeMonitor some_load() {
    FakeMonitor monitor;
    for (unsigned i = 0; i < 5; i++) {
        WorkSample sample;
        sample.seconds = 1.3 * i;
        sample.lost = i;
        sample.workqueues = {workqueue(1, "unbound", 100 + 7 * i), workqueue(2, "per-cpu", 1000 + 333 * i),
                             workqueue(3, "bh", 10 * i)};
        auto& unbound = sample.workqueues[0];
        unbound.unbound = unbound.mem_reclaim = true;
        unbound.managed = false;
        unbound.pools = i < 2 ? 5 : 6;
        unbound.mayday = i;
        unbound.repatriated = 2 * i;
        unbound.completed -= 3;
        sample.workqueues[1].cpu_time_us = 123'457 * i;
        sample.workqueues[1].cm_wakeup = i;
        sample.workqueues[2].bh = true;
        sample.workqueues[2].managed = false;
        sample.times = {times(1, 7 * i, 60, 77), times(2, 333 * i, 100)};
        sample.functions = {{2, 9, "work_of_it", 333UL * i, 20'000'003UL * i}};
        monitor.samples_.push_back(sample);
    }
    monitor.limits_ = "it refuses fentry";
    return monitor;
}

class TopRecordingTest : public testing::Test {
  protected:
    // Returns the output; expects the exit code CODE.
    std::string printed(TopOptions options, int code = kOk) {
        options.interval = 0.001;
        CaptureStdout();
        CaptureStderr();
        auto monitor = some_load();
        EXPECT_EQ(options.replay.empty() ? top(options, monitor) : replay(options), code);
        error_ = GetCapturedStderr();
        return GetCapturedStdout();
    }
    std::string record(bool as_json, bool functions) {
        TopOptions options;
        options.record = file_;
        options.iterations = 4;
        options.json = as_json;
        options.functions = functions;
        return printed(options);
    }
    [[nodiscard]] TopOptions of_file(bool as_json, bool functions) const {
        TopOptions options;
        options.replay = file_;
        options.json = as_json;
        options.functions = functions;
        if (!as_json) options.iterations = 4;
        return options;
    }

    TempTree tree_;
    std::string file_ = tree_.path("recording");
    std::string error_;
};

TEST_F(TopRecordingTest, ShowsTheSameNumbers) {
    for (const bool as_json : {true, false})
        for (const bool functions : {true, false}) {
            const auto seen = record(as_json, functions);
            EXPECT_THAT(seen, HasSubstr(functions ? "work_of_it" : "per-cpu"));
            EXPECT_EQ(printed(of_file(as_json, functions)), seen) << as_json << functions;
        }
}

TEST_F(TopRecordingTest, IsTheJsonOfTopWithFunctions) {
    const auto seen = record(true, true);
    EXPECT_EQ(tree_.read("recording"), seen);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 4);
}

TEST_F(TopRecordingTest, HasFunctionsThoughNobodyLooksAtThem) {
    record(false, false);
    EXPECT_THAT(printed(of_file(false, true)), HasSubstr("work_of_it"));
}

TEST_F(TopRecordingTest, ShowsTheNamedAlone) {
    record(true, true);
    auto options = of_file(true, true);
    options.names = {"bh"};
    const json first = json::parse(printed(options).substr(0, printed(options).find('\n')));
    ASSERT_EQ(first.at("workqueues").size(), 1U);
    EXPECT_EQ(first.at("workqueues")[0].at("name"), "bh");
    EXPECT_EQ(first.at("functions"), json::array());
}

TEST_F(TopRecordingTest, WithNoneOfTheNamedIsAnErrorAtItsEnd) {
    record(true, true);
    auto options = of_file(true, true);
    options.names = {"nothing"};
    printed(options, kFailure);
    EXPECT_EQ(error_, "wq-tunectl: there is no workqueue 'nothing' in " + file_ + "\n");
    options.names = {"nothing", "bh"};
    printed(options);
    EXPECT_EQ(error_, "");
}

TEST_F(TopRecordingTest, IsShownUpToWhereItWasCutOff) {
    const auto seen = record(true, true);
    const auto third = seen.find('\n', seen.find('\n') + 1) + 1;
    for (const std::size_t more : {1U, 20U, 200U}) {
        tree_.write("recording", seen.substr(0, third + more));
        EXPECT_EQ(printed(of_file(true, true)), seen.substr(0, third));
        EXPECT_EQ(error_, "wq-tunectl: " + file_ + ": the recording is cut off here\n");
    }
    tree_.write("recording", seen.substr(0, third));
    EXPECT_EQ(printed(of_file(true, true)), seen.substr(0, third));
    EXPECT_EQ(error_, "");
    tree_.write("recording", seen.substr(0, seen.size() - 1));  // only the newline is missing
    EXPECT_EQ(printed(of_file(true, true)), seen);
}

TEST_F(TopRecordingTest, OfSomethingElseIsAnErrorThatNamesTheLine) {
    const auto seen = record(true, true);
    const auto first = seen.substr(0, seen.find('\n') + 1);
    for (const std::string bad : {"{}\n", "7\n", "\n", "{\"time\":\"late\"}\n"}) {
        tree_.write("recording", first + bad + first);
        EXPECT_EQ(printed(of_file(true, true), kFailure), first);
        EXPECT_THAT(error_, HasSubstr("recording:2: not an interval of"));
    }
    tree_.write("recording", "not json");
    printed(of_file(true, true), kFailure);
    EXPECT_THAT(error_, HasSubstr("recording:1: not an interval of"));
    tree_.write("recording", "");
    printed(of_file(true, true), kFailure);
    EXPECT_THAT(error_, EndsWith("recording: it is empty\n"));
    tree_.remove("recording");
    printed(of_file(true, true), kFailure);
    EXPECT_THAT(error_, HasSubstr("No such file"));
    tree_.add(test::Dir("recording"));
    printed(of_file(true, true), kFailure);
    EXPECT_EQ(error_, "wq-tunectl: " + file_ + ": Is a directory\n");
}

TEST_F(TopRecordingTest, WithoutFunctionsHasNoneToShow) {
    TopOptions options;
    options.iterations = 4;
    options.json = true;
    tree_.write("recording", printed(options));
    printed(of_file(true, true), kFailure);
    EXPECT_THAT(error_, HasSubstr("the recording has no functions"));
    EXPECT_NE(printed(of_file(true, false)), "");
}

TEST_F(TopRecordingTest, IsBegunAnewByTheFirstIntervalAlone) {
    tree_.write("recording", "older\n");
    TopOptions options;
    options.record = file_;
    FakeMonitor denied;
    denied.attached_ = fail("BPF is denied");
    CaptureStderr();
    EXPECT_EQ(top(options, denied), kFailure);
    EXPECT_EQ(GetCapturedStderr(), "wq-tunectl: BPF is denied\n");
    EXPECT_EQ(tree_.read("recording"), "older\n");
    tree_.write("recording", std::string(100'000, 'x'));
    const auto seen = record(true, true);
    EXPECT_EQ(tree_.read("recording"), seen);
}

TEST_F(TopRecordingTest, CannotBeWrittenWhereNothingCan) {
    file_ = "/dev/full";
    TopOptions options;
    options.record = file_;
    options.iterations = 1;
    printed(options, kFailure);
    EXPECT_EQ(error_, "wq-tunectl: /dev/full: No space left on device\n");
    options.record = tree_.path("no/such/folder");
    printed(options, kFailure);
    EXPECT_THAT(error_, HasSubstr("No such file"));
}

}  // namespace
}  // namespace wq::ctl
