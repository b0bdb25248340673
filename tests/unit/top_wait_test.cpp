// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;
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

// Replaces the standard output by a pipe; the destructor restores it.
class Output {
  public:
    Output() : before_(::dup(STDOUT_FILENO)) {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        std::fflush(stdout);
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[1]);
        reader_ = Fd(ends[0]);
        room_ = static_cast<std::size_t>(::fcntl(STDOUT_FILENO, F_GETPIPE_SZ));
    }
    ~Output() { ::dup2(before_.get(), STDOUT_FILENO); }
    [[nodiscard]] std::size_t room() const { return room_; }
    std::string take(std::size_t most) {
        std::string out(most, '\0');
        out.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(reader_.get(), out.data(), most), 0)));
        return out;
    }

  private:
    Fd before_, reader_;
    std::size_t room_ = 0;
};

TEST(TopWait, ASignalEndsAWriteThatNobodyTakes) {
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
        Result<bool> written;
        std::size_t taken = 0;
        {
            Output output;
            TopWait wait;
            ::raise(one);
            written = wait.write(std::string(output.room() + 1, 'x'));
            taken = output.take(2 * output.room()).size();
            EXPECT_EQ(taken, output.room()) << "all that there was room for";
        }
        ASSERT_TRUE(written);
        EXPECT_FALSE(*written) << one;
    }
}

TEST(TopWait, AWriteThatIsTakenIsNotCutOff) {
    const std::string text(10'000, 'x');
    Result<bool> written;
    std::string taken;
    TopWait::Event then{};
    {
        Output output;
        TopWait wait;
        ::raise(SIGTERM);
        written = wait.write(text);
        taken = output.take(2 * text.size());
        then = wait.until(Clock::now() + kLong, false);
    }
    EXPECT_TRUE(written.value());
    EXPECT_EQ(taken, text);
    EXPECT_EQ(then, TopWait::Event::quit) << "the signal waits its turn";
}

TEST(TopWait, AResizedTerminalEndsNoWrite) {
    Result<bool> written;
    std::string rest;
    {
        Output output;
        TopWait wait;
        ::raise(SIGWINCH);
        std::thread reader([&] {
            for (std::size_t left = output.room() + 1; left > 0;) {
                rest = output.take(left);
                left -= rest.size();
            }
        });
        written = wait.write(std::string(output.room(), 'x') + "y");
        reader.join();
    }
    EXPECT_TRUE(written.value());
    EXPECT_EQ(rest.back(), 'y');
}

TEST(TopWait, AWriteThatFailsSaysSo) {
    std::fflush(stdout);
    const Fd before(::dup(STDOUT_FILENO)), full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    TopWait wait;
    ::dup2(full.get(), STDOUT_FILENO);
    const auto written = wait.write("x");
    ::dup2(before.get(), STDOUT_FILENO);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ENOSPC);
    EXPECT_EQ(written.error().text, "standard output: No space left on device");
}

TEST(TopWait, LeavesSignalsAsTheyWere) {
    const auto blocks = [] {
        sigset_t now;
        ::sigprocmask(SIG_SETMASK, nullptr, &now);
        return ::sigismember(&now, SIGTERM);
    };
    const int before = blocks();
    {
        const TopWait wait;
        EXPECT_EQ(blocks(), 1);
    }
    EXPECT_EQ(blocks(), before);
}

}  // namespace
}  // namespace wq::ctl
