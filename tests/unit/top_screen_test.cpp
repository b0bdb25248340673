// SPDX-License-Identifier: LGPL-2.1-or-later
// The terminal of `top`: what it waits for and what it shows.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "ctl/observe/top_command.h"
#include "ctl/options.h"
#include "fake_monitor.h"
#include "temp_tree.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

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
