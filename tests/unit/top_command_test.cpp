// SPDX-License-Identifier: LGPL-2.1-or-later
// `top` as text and JSON; `top --replay` shows what `top --record` recorded.
#include "ctl/observe/top_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "fake_monitor.h"
#include "run_command.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

std::vector<json> lines_of(const test::Ran& got) {
    std::vector<json> all;
    for (const std::string& line : test::lines_of(got.out)) all.push_back(json::parse(line));
    return all;
}

test::Ran run(TopOptions options, FakeMonitor& monitor) {
    options.interval = 0.001;
    return test::captured([&] { return options.replay.empty() ? top(options, monitor) : replay(options); });
}

TopOptions intervals(unsigned count, bool as_json = false, bool functions = false) {
    TopOptions options;
    options.iterations = count;
    options.json = as_json;
    options.functions = functions;
    return options;
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
        sample.functions = {{{2, 9}, {"work_of_it", 10UL * i, 20'000'000UL * i}}};
        monitor.samples_.push_back(sample);
    }
    return monitor;
}

TEST(TopCommand, JsonHasALineForEachInterval) {
    auto monitor = busy_and_idle(3);
    const auto got = run(intervals(2, true, true), monitor);
    EXPECT_EQ(got.code, kOk);
    EXPECT_TRUE(monitor.functions_);
    const auto lines = lines_of(got);
    ASSERT_EQ(lines.size(), 2U);
    json first = lines[0];
    EXPECT_GT(first.at("time"), 1'700'000'000);
    first.erase("time");
    const double waited = first.at("workqueues")[1].at("wait_ns").at("p50");
    EXPECT_GT(waited, 0);
    first.at("workqueues")[1].erase("wait_ns");
    EXPECT_EQ(first, json::parse(R"({"seconds": 1.0, "lost": 0, "limits": "",
        "workqueues": [
            {"name": "idle", "id": 1, "kind": "per-cpu", "total": 4, "in_flight": 0, "cpu_seconds": 0.0,
             "cpu_hogs": 0, "cm_wakeups": 0, "repatriated": null, "mayday": null, "rescued": null,
             "reset": false, "items": 0, "per_second": 0.0, "cpu": 0.0, "timed": 0,
             "wait_ns": {"p50": null, "p90": null, "p99": null}, "lock_ns": null,
             "enqueue_ns": {"p50": null, "p90": null, "p95": null, "p99": null}},
            {"name": "busy", "id": 2, "kind": "unbound", "total": 110, "in_flight": 0, "cpu_seconds": 0.0,
             "cpu_hogs": null, "cm_wakeups": null, "repatriated": 0, "mayday": null, "rescued": null,
             "reset": false, "items": 10, "per_second": 10.0, "cpu": 0.0, "timed": 10, "lock_ns": 40.0,
             "enqueue_ns": {"p50": null, "p90": null, "p95": null, "p99": null}}],
        "functions": [{"function": "work_of_it", "workqueue": "busy", "id": 2, "items": 10,
                       "per_second": 10.0, "busy": 0.02, "mean_ns": 2000000.0}]})"));
    EXPECT_EQ(lines[1].at("workqueues")[1].at("total"), 120);
}

TEST(TopCommand, TextHasTheNamedAndOtherwiseLeavesTheIdleOut) {
    auto monitor = busy_and_idle(2);
    auto options = intervals(1);
    options.once = true;
    const auto got = run(options, monitor);
    EXPECT_THAT(got.out, HasSubstr("\nbusy "));
    EXPECT_THAT(got.out, testing::Not(HasSubstr("\nidle ")));
    EXPECT_THAT(got.out, testing::EndsWith("1 idle\n"));
    EXPECT_EQ(got.err, "");
    monitor.at_ = 0;
    options.names = {"idle", "busy"};
    EXPECT_THAT(run(options, monitor).out, HasSubstr("\nidle "));
    monitor.at_ = 0;
    options.names = {"idle"};
    EXPECT_THAT(run(options, monitor).out, testing::Not(HasSubstr("\nbusy ")));
    monitor.at_ = 0;
    options.names = {"idle", "none"};
    const auto none = run(options, monitor);
    EXPECT_EQ(none.code, kFailure);
    EXPECT_EQ(none.err, "wq-tunectl: there is no workqueue 'none'\n");
}

TEST(TopCommand, SaysOnceWhatTheKernelLacks) {
    auto monitor = busy_and_idle(4);
    monitor.limits_ = "the lock";
    EXPECT_EQ(run(intervals(3), monitor).err, "wq-tunectl: not seen: the lock\n");
    monitor.at_ = 0;
    const auto got = run(intervals(3, true), monitor);
    EXPECT_EQ(got.err, "") << "it is in each line there";
    EXPECT_EQ(lines_of(got).at(2).at("limits"), "the lock");
}

TEST(TopCommand, AFailureIsOneLineAfterWhatWasSeen) {
    FakeMonitor denied;
    denied.attached_ = fail("BPF is denied");
    auto got = run({}, denied);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(got.err, "wq-tunectl: BPF is denied\n");
    auto ends = busy_and_idle(2);
    got = run({}, ends);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_THAT(got.out, HasSubstr("busy"));
    EXPECT_EQ(got.err, "wq-tunectl: no more samples\n");
    auto again = busy_and_idle(4);
    for (unsigned i = 1; i < 100; i++) again.failures_[i] = EAGAIN;
    got = run({}, again);
    EXPECT_EQ(got.code, kFailure);
    EXPECT_EQ(got.err, "wq-tunectl: no luck\n");
}

TEST(TopCommand, AFailureThatPassesMakesOneIntervalLonger) {
    for (const int code : {EAGAIN, ENOMEM, EINTR}) {
        auto monitor = busy_and_idle(5);
        monitor.failures_ = {{0, code}, {2, code}};
        const auto got = run(intervals(2, true), monitor);
        EXPECT_EQ(got.code, kOk) << code;
        EXPECT_EQ(got.err, "");
        std::vector<double> seconds;
        for (const auto& line : lines_of(got)) seconds.push_back(line.at("seconds"));
        EXPECT_THAT(seconds, testing::ElementsAre(2, 1)) << code;
    }
}

TEST(TopCommand, SaysWhatWasLost) {
    TopInterval interval;
    interval.seconds = 1;
    interval.lost = 3;
    interval.workqueues.resize(1);
    interval.workqueues[0].now = workqueue(1, "a", 5);
    interval.workqueues[0].items = 5;
    const auto text = interval_text(interval, {}, 80);
    EXPECT_THAT(text, HasSubstr("\nnot timed: 3 items\n"));
}

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
        sample.functions = {{{2, 9}, {"work_of_it", 333UL * i, 20'000'003UL * i}}};
        monitor.samples_.push_back(sample);
    }
    monitor.limits_ = "it refuses fentry";
    return monitor;
}

class TopRecording : public testing::Test {
  protected:
    // Returns the output; expects the exit code CODE.
    std::string printed(const TopOptions& options, int code = kOk) {
        auto monitor = some_load();
        auto got = run(options, monitor);
        EXPECT_EQ(got.code, code);
        error_ = got.err;
        return got.out;
    }
    std::string record(bool as_json, bool functions) {
        auto options = intervals(4, as_json, functions);
        options.record = file_;
        return printed(options);
    }
    [[nodiscard]] TopOptions of_file(bool as_json, bool functions) const {
        auto options = intervals(4, as_json, functions);
        options.replay = file_;
        if (as_json) options.iterations.reset();
        return options;
    }

    test::TempTree tree_;
    std::string file_ = tree_.path("recording");
    std::string error_;
};

TEST_F(TopRecording, ShowsTheSameNumbers) {
    for (const bool as_json : {true, false})
        for (const bool functions : {true, false}) {
            const auto seen = record(as_json, functions);
            EXPECT_THAT(seen, HasSubstr(functions ? "work_of_it" : "per-cpu"));
            EXPECT_EQ(printed(of_file(as_json, functions)), seen) << as_json << functions;
            EXPECT_THAT(printed(of_file(false, true)), HasSubstr("work_of_it")) << "recorded in any case";
        }
}

TEST_F(TopRecording, IsTheJsonOfTopWithFunctions) {
    tree_.write("recording", std::string(100'000, 'x'));
    const auto seen = record(true, true);
    EXPECT_EQ(tree_.read("recording"), seen);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 4);
    tree_.write("recording", printed(intervals(4, true)));
    printed(of_file(true, true), kFailure);
    EXPECT_THAT(error_, HasSubstr("the recording has no functions"));
    EXPECT_NE(printed(of_file(true, false)), "");
}

TEST_F(TopRecording, ShowsTheNamedAlone) {
    record(true, true);
    auto options = of_file(true, true);
    options.names = {"bh"};
    const json first = json::parse(printed(options).substr(0, printed(options).find('\n')));
    ASSERT_EQ(first.at("workqueues").size(), 1U);
    EXPECT_EQ(first.at("workqueues")[0].at("name"), "bh");
    EXPECT_EQ(first.at("functions"), json::array());
}

TEST_F(TopRecording, IsShownUpToWhereItWasCutOff) {
    const auto seen = record(true, true);
    const auto third = seen.find('\n', seen.find('\n') + 1) + 1;
    for (const std::size_t more : {0U, 1U, 20U, 200U}) {
        tree_.write("recording", seen.substr(0, third + more));
        EXPECT_EQ(printed(of_file(true, true), more == 0 ? kOk : kFailure), seen.substr(0, third));
        EXPECT_THAT(error_, HasSubstr(more == 0 ? "" : "recording:3: not an interval of"));
    }
    tree_.write("recording", seen.substr(0, seen.size() - 1));  // only the newline is missing
    EXPECT_EQ(printed(of_file(true, true)), seen);
    EXPECT_EQ(error_, "");
}

TEST_F(TopRecording, OfSomethingElseIsAnErrorThatNamesTheLine) {
    const auto seen = record(true, true);
    const auto first = seen.substr(0, seen.find('\n') + 1);
    for (const std::string bad : {"{}\n", "7\n", "\n", "{\"time\":\"late\"}\n"}) {
        tree_.write("recording", first + bad + first);
        EXPECT_EQ(printed(of_file(true, true), kFailure), first);
        EXPECT_THAT(error_, HasSubstr("recording:2: not an interval of"));
    }
    const auto refused = [&] {
        printed(of_file(true, true), kFailure);
        return error_;
    };
    json line = json::parse(first);
    line.at("workqueues")[0].at("wait_ns").erase("p90");
    for (const std::string& bad : {std::string("not json"), line.dump() + "\n"}) {
        tree_.write("recording", bad);
        EXPECT_THAT(refused(), HasSubstr("recording:1: not an interval of"));
    }
    tree_.write("recording", "");
    EXPECT_THAT(refused(), testing::EndsWith("recording: it is empty\n"));
    tree_.remove("recording");
    EXPECT_THAT(refused(), HasSubstr("No such file"));
    tree_.add(test::Dir("recording"));
    EXPECT_EQ(refused(), "wq-tunectl: " + file_ + ": Is a directory\n");
}

TEST_F(TopRecording, StaysWhereNothingIsWrittenAndSaysWhereNothingCanBe) {
    tree_.write("recording", "older\n");
    TopOptions options = intervals(1);
    options.record = file_;
    FakeMonitor denied;
    denied.attached_ = fail("BPF is denied");
    EXPECT_EQ(run(options, denied).code, kFailure);
    EXPECT_EQ(tree_.read("recording"), "older\n");
    options.record = "/dev/full";
    printed(options, kFailure);
    EXPECT_EQ(error_, "wq-tunectl: /dev/full: writing: No space left on device\n");
    options.record = tree_.path("no/such/folder");
    printed(options, kFailure);
    EXPECT_THAT(error_, HasSubstr("No such file"));
}

// ---- the terminal: what it waits for and what it shows

// ---- top wait

constexpr auto kLong = std::chrono::hours(1);

// Replaces the standard input by a pipe; the destructor restores it.
class Input {
  public:
    Input() : before_(::dup(STDIN_FILENO)) {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        ::dup2(ends[0], STDIN_FILENO);
        ::close(ends[0]);
        keys_ = Fd(ends[1]);
    }
    ~Input() { ::dup2(before_.get(), STDIN_FILENO); }
    void press(char key) { EXPECT_EQ(::write(keys_.get(), &key, 1), 1); }
    void close() { keys_ = Fd(); }

  private:
    Fd before_, keys_;
};

TEST(TopWait, EndsAtATimeASignalAKeyOrTheEndOfInput) {
    Input input;
    TopWait wait;
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
        ::raise(one);
        EXPECT_EQ(wait.until(Clock::now() + kLong, false), TopWait::Event::quit) << one;
    }
    ::raise(SIGWINCH);
    EXPECT_EQ(wait.until(Clock::now() + kLong, false), TopWait::Event::resized);
    EXPECT_EQ(wait.until(Clock::now() - std::chrono::seconds(1), false), TopWait::Event::time) << "each once";
    input.press('q');
    EXPECT_EQ(wait.until(Clock::now(), false), TopWait::Event::time) << "it does not wait for keys";
    EXPECT_EQ(wait.until(Clock::now() + kLong, true), TopWait::Event::key);
    input.close();
    char key = 0;
    EXPECT_EQ(::read(STDIN_FILENO, &key, 1), 1);
    EXPECT_EQ(wait.until(Clock::now() + kLong, true), TopWait::Event::quit);
}

bool sigterm_is_blocked() {
    sigset_t now;
    ::sigprocmask(SIG_SETMASK, nullptr, &now);
    return ::sigismember(&now, SIGTERM) == 1;
}

TEST(TopWait, AWriteThatFailsSaysSoAndSignalsAreAsTheyWere) {
    const bool blocked = sigterm_is_blocked();
    std::fflush(stdout);
    const Fd before(::dup(STDOUT_FILENO)), full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    std::optional<TopWait> wait(std::in_place);
    EXPECT_TRUE(sigterm_is_blocked());
    ::dup2(full.get(), STDOUT_FILENO);
    const auto written = wait->write("x");
    ::dup2(before.get(), STDOUT_FILENO);
    wait.reset();
    EXPECT_EQ(sigterm_is_blocked(), blocked);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ENOSPC);
    EXPECT_EQ(written.error().text, "standard output: No space left on device");
}

// ---- top screen

// A process on a terminal of its own. Only shows() reads its output.
class OnTerminal {
  public:
    OnTerminal(const char* term, const std::function<int()>& does) {
        const winsize size{24, 100, 0, 0};
        int master = -1;
        pid_ = ::forkpty(&master, nullptr, nullptr, &size);
        if (pid_ == 0) {
            ::setenv("TERM", term, 1);
            ::unsetenv("LINES");
            ::unsetenv("COLUMNS");
            ::_exit(does());
        }
        master_ = Fd(master);
    }
    ~OnTerminal() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    OnTerminal(const OnTerminal&) = delete;
    OnTerminal& operator=(const OnTerminal&) = delete;

    void type(std::string_view keys) const {
        EXPECT_EQ(::write(master_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }
    // Reads the output until TEXT is in it. Returns false if TEXT does not come in 30 s.
    bool shows(std::string_view text) {
        for (int i = 0; i < 300; i++) {
            const auto at = seen_.find(text);
            if (at != std::string::npos) {
                seen_.erase(0, at + text.size());
                return true;
            }
            pollfd one{master_.get(), POLLIN, 0};
            if (::poll(&one, 1, 100) <= 0) continue;
            char buffer[4096];
            const ssize_t got = ::read(master_.get(), buffer, sizeof(buffer));
            if (got <= 0) return false;
            seen_.append(buffer, static_cast<std::size_t>(got));
        }
        return false;
    }
    // Returns the exit code, or -1 if a signal ended the process or it does not end in a minute.
    int exit_code() {
        for (int i = 0; i < 600; i++) {
            int status = 0;
            if (::waitpid(pid_, &status, WNOHANG) == pid_) {
                pid_ = -1;
                return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return -1;
    }

  private:
    pid_t pid_ = -1;
    Fd master_;
    std::string seen_;
};

TopInterval interval(unsigned rows) {
    TopInterval out;
    out.seconds = 1;
    out.workqueues.resize(rows);
    return out;
}

TEST(TopScreen, NeedsATerminalThatIsKnown) {
    OnTerminal process("no-such-terminal", [] {
        const auto screen = TopScreen::open({});
        if (screen) return 1;
        return screen.error().text ==
                       "this terminal cannot be used (TERM=no-such-terminal); --once prints a table"
                   ? 0
                   : 2;
    });
    EXPECT_EQ(process.exit_code(), 0);
}

int run_until_quit(TopScreen& screen) {
    TopWait wait;
    for (;;) {
        const auto event = wait.until(std::chrono::steady_clock::now() + std::chrono::minutes(1), true);
        if (event != TopWait::Event::key) return 97;
        if (!screen.take_keys()) return 0;
    }
}

TEST(TopScreen, KeysScrollSortAndOpenTheHelp) {
    OnTerminal process("xterm", [] {
        auto screen = TopScreen::open({});
        if (!screen) return 98;
        TopInterval one = interval(24);
        for (unsigned i = 0; i < 24; i++) {
            // No character stays in its place when the rows move: the terminal gets changes only.
            for (unsigned k = 0; k < 3; k++) one.workqueues[i].now.name += static_cast<char>('a' + i + k);
            one.workqueues[i].per_second = one.workqueues[i].items = 100 - i;
        }
        (*screen)->show(one, "");
        return run_until_quit(**screen);
    });
    EXPECT_TRUE(process.shows("WORKQUEUE"));
    EXPECT_TRUE(process.shows("tuv"));
    const std::pair<const char*, const char*> steps[] = {
        {"\033OF", "xyz"},  // the End key in keypad mode of xterm
        {"\033OH", "abc"},  // Home
        {"?", "rescuer"},  {"x", "WORKQUEUE"}, {">", "cpu"},
    };
    for (const auto& [keys, text] : steps) {
        process.type(keys);
        EXPECT_TRUE(process.shows(text)) << keys << text;
    }
    process.type("q");
    EXPECT_EQ(process.exit_code(), 0);
}

TEST(TopScreen, ShowsARecording) {
    test::TempTree tree;
    TopInterval one = interval(1);
    one.workqueues[0].p99 = 84'000;
    tree.write("recording", interval_json({one, 1'700'000'000, "", true}, true).dump() + "\n");
    OnTerminal process("xterm", [&] {
        TopOptions options;
        options.replay = tree.path("recording");
        return replay(options);
    });
    EXPECT_TRUE(process.shows("84us"));
    process.type("q");
    EXPECT_EQ(process.exit_code(), kOk);
}

}  // namespace
}  // namespace wq::ctl
