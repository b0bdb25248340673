// SPDX-License-Identifier: LGPL-2.1-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/observe/top_command.h"
#include "ctl/options.h"
#include "fake_monitor.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;

struct Run {
    int code = 0;
    std::string out, err;
};

Run run(const TopOptions& options, FakeMonitor& monitor) {
    CaptureStdout();
    CaptureStderr();
    Run got;
    got.code = top(options, monitor);
    got.out = GetCapturedStdout();
    got.err = GetCapturedStderr();
    return got;
}

// SAMPLES samples, one per second: "busy" starts ten items in each second, "idle" none.
FakeMonitor busy_and_idle(unsigned samples) {
    FakeMonitor monitor;
    for (unsigned i = 0; i < samples; i++) {
        WorkSample sample;
        sample.seconds = i;
        sample.workqueues = {workqueue(1, "idle", 4), workqueue(2, "busy", 100 + 10 * i)};
        sample.workqueues[1].unbound = true;
        sample.workqueues[1].managed = false;
        sample.times = {times(2, 10 * i, 100, 40)};
        sample.functions = {{2, 9, "work_of_it", 10UL * i, 20'000'000UL * i}};
        monitor.samples_.push_back(sample);
    }
    return monitor;
}

TopOptions quick() {
    TopOptions options;
    options.interval = 0.001;
    return options;
}

TEST(TopCommand, JsonHasALineForEachInterval) {
    auto monitor = busy_and_idle(3);
    auto options = quick();
    options.json = true;
    options.iterations = 2;
    const auto got = run(options, monitor);
    EXPECT_EQ(got.code, kOk);
    std::istringstream lines(got.out);
    std::string line;
    for (unsigned i = 1; i <= 2; i++) {
        ASSERT_TRUE(std::getline(lines, line));
        const json interval = json::parse(line);
        EXPECT_EQ(interval.at("seconds"), 1.0);
        EXPECT_EQ(interval.at("lost"), 0);
        EXPECT_FALSE(interval.contains("functions"));
        const json& idle = interval.at("workqueues").at(0);
        EXPECT_EQ(idle.at("name"), "idle");
        EXPECT_EQ(idle.at("kind"), "per-cpu");
        EXPECT_EQ(idle.at("timed"), 0);
        EXPECT_TRUE(idle.at("lock_ns").is_null());
        EXPECT_TRUE(idle.at("wait_ns").at("p50").is_null());
        EXPECT_TRUE(idle.at("repatriated").is_null());
        EXPECT_TRUE(idle.at("mayday").is_null());
        const json& busy = interval.at("workqueues").at(1);
        EXPECT_EQ(busy.at("total"), 100 + 10 * i);
        EXPECT_EQ(busy.at("items"), 10);
        EXPECT_EQ(busy.at("timed"), 10);
        EXPECT_EQ(busy.at("lock_ns"), 40.0);
        EXPECT_EQ(busy.at("reset"), false);
        EXPECT_TRUE(busy.at("cpu_hogs").is_null());
        EXPECT_EQ(busy.at("repatriated"), 0);
    }
    EXPECT_FALSE(std::getline(lines, line));
}

TEST(TopCommand, JsonHasNullForWhatCannotHappen) {
    const auto row_of = [](const KernelWorkqueue& one) {
        TopRates rates;
        WorkSample sample;
        sample.workqueues = {one};
        rates.add(sample);
        sample.seconds = 1;
        return interval_json(*rates.add(sample), false, "", 0).at("workqueues").at(0);
    };
    auto one = workqueue(1, "a");
    EXPECT_EQ(row_of(one).at("cpu_hogs"), 0);
    EXPECT_EQ(row_of(one).at("cm_wakeups"), 0);
    one.managed = false;  // WQ_CPU_INTENSIVE
    EXPECT_TRUE(row_of(one).at("cpu_hogs").is_null());
    EXPECT_TRUE(row_of(one).at("cm_wakeups").is_null());
    EXPECT_EQ(row_of(one).at("cpu"), 0.0);
    EXPECT_EQ(row_of(one).at("cpu_seconds"), 0.0);
    one.bh = true;
    EXPECT_TRUE(row_of(one).at("cpu").is_null());
    EXPECT_TRUE(row_of(one).at("cpu_seconds").is_null());
}

TEST(TopCommand, JsonHasFunctionsWhereAskedFor) {
    auto monitor = busy_and_idle(2);
    auto options = quick();
    options.json = options.functions = true;
    options.iterations = 1;
    const json functions = json::parse(run(options, monitor).out).at("functions");
    EXPECT_TRUE(monitor.functions_);
    ASSERT_EQ(functions.size(), 1U);
    EXPECT_EQ(functions[0].at("function"), "work_of_it");
    EXPECT_EQ(functions[0].at("workqueue"), "busy");
    EXPECT_EQ(functions[0].at("busy"), 0.02);
    EXPECT_EQ(functions[0].at("mean_ns"), 2e6);
}

TEST(TopCommand, TextLeavesTheIdleOut) {
    auto monitor = busy_and_idle(2);
    auto options = quick();
    options.once = true;
    options.iterations = 1;
    const auto got = run(options, monitor);
    EXPECT_THAT(got.out, HasSubstr("\nbusy "));
    EXPECT_THAT(got.out, testing::Not(HasSubstr("\nidle ")));
    EXPECT_THAT(got.out, testing::EndsWith("1 idle\n"));
    EXPECT_EQ(got.err, "");
}

TEST(TopCommand, TextHasTheNamedThoughIdle) {
    auto monitor = busy_and_idle(2);
    auto options = quick();
    options.once = true;
    options.iterations = 1;
    options.names = {"idle", "busy"};
    EXPECT_THAT(run(options, monitor).out, HasSubstr("\nidle "));
    EXPECT_THAT(monitor.names_, ElementsAre("idle", "busy"));
}

TEST(TopCommand, SaysOnceWhatTheKernelLacks) {
    auto monitor = busy_and_idle(4);
    monitor.limits_ = "the lock";
    auto options = quick();
    options.iterations = 3;
    EXPECT_EQ(run(options, monitor).err, "wq-tunectl: not seen: the lock\n");
    monitor.at_ = 0;
    options.json = true;
    const auto got = run(options, monitor);
    EXPECT_EQ(got.err, "") << "it is in each line there";
    EXPECT_THAT(got.out, HasSubstr("\"limits\":\"the lock\""));
}

TEST(TopCommand, AFailureIsOneLineAndNoOutput) {
    FakeMonitor monitor;
    monitor.attached_ = fail("BPF is denied");
    const auto got = run(quick(), monitor);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(got.err, "wq-tunectl: BPF is denied\n");
}

TEST(TopCommand, AFailureOnTheWayEndsIt) {
    auto monitor = busy_and_idle(2);
    const auto got = run(quick(), monitor);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_THAT(got.out, HasSubstr("busy"));
    EXPECT_EQ(got.err, "wq-tunectl: no more samples\n");
}

TEST(TopCommand, AFailureThatPassesMakesOneIntervalLonger) {
    for (const int code : {EAGAIN, ENOMEM, EINTR}) {
        auto monitor = busy_and_idle(5);
        monitor.failures_ = {{0, code}, {2, code}};
        auto options = quick();
        options.json = true;
        options.iterations = 2;
        const auto got = run(options, monitor);
        EXPECT_EQ(got.code, kOk) << code;
        EXPECT_EQ(got.err, "");
        std::istringstream lines(got.out);
        std::string line;
        std::vector<double> seconds;
        while (std::getline(lines, line)) seconds.push_back(json::parse(line).at("seconds"));
        EXPECT_THAT(seconds, ElementsAre(2, 1)) << code;
    }
}

TEST(TopCommand, AFailureThatDoesNotPassEndsIt) {
    auto monitor = busy_and_idle(4);
    for (unsigned i = 1; i < 100; i++) monitor.failures_[i] = EAGAIN;
    const auto got = run(quick(), monitor);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.err, "wq-tunectl: no luck\n");
}

TEST(TopCommand, SaysWhatWasLostAndWhatBeganAnew) {
    TopInterval interval;
    interval.seconds = 1;
    interval.lost = 3;
    interval.workqueues.resize(1);
    interval.workqueues[0].now = workqueue(1, "a", 5);
    interval.workqueues[0].items = 5;
    interval.workqueues[0].was_reset = true;
    const auto text = interval_text(interval, {}, 80);
    EXPECT_THAT(text, HasSubstr("\nnot timed: 3 items\n"));
    EXPECT_THAT(text, HasSubstr(std::string("\n") + kResetNote + "\n"));
    interval.lost = 1;
    EXPECT_THAT(interval_text(interval, {}, 80), HasSubstr("\nnot timed: 1 item\n"));
}

}  // namespace
}  // namespace wq::ctl
