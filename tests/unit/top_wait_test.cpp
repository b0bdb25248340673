// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/top_wait.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLong = std::chrono::hours(1);

// The standard input of a test, put back after it.
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

TEST(TopWait, ATimeThatIsPastIsDue) {
    TopWait wait;
    EXPECT_EQ(wait.until(Clock::now() - std::chrono::seconds(1), false), TopWait::Event::time);
}

TEST(TopWait, SignalsEndAWait) {
    TopWait wait;
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) {
        ::raise(one);
        EXPECT_EQ(wait.until(Clock::now() + kLong, false), TopWait::Event::quit) << one;
    }
    ::raise(SIGWINCH);
    EXPECT_EQ(wait.until(Clock::now() + kLong, false), TopWait::Event::resized);
    EXPECT_EQ(wait.until(Clock::now(), false), TopWait::Event::time) << "each once";
}

TEST(TopWait, KeysEndAWaitWhereTheyAreAskedFor) {
    Input input;
    TopWait wait;
    input.press('q');
    EXPECT_EQ(wait.until(Clock::now(), false), TopWait::Event::time);
    EXPECT_EQ(wait.until(Clock::now() + kLong, true), TopWait::Event::key);
}

TEST(TopWait, AnEndOfInputIsAWishToQuit) {
    Input input;
    TopWait wait;
    input.close();
    EXPECT_EQ(wait.until(Clock::now() + kLong, true), TopWait::Event::quit);
}

TEST(TopWait, LeavesSignalsAsTheyWere) {
    sigset_t before, during, after;
    ::sigprocmask(SIG_SETMASK, nullptr, &before);
    {
        const TopWait wait;
        ::sigprocmask(SIG_SETMASK, nullptr, &during);
    }
    ::sigprocmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(::sigismember(&during, SIGTERM), 1);
    EXPECT_EQ(::sigismember(&after, SIGTERM), ::sigismember(&before, SIGTERM));
}

}  // namespace
}  // namespace wq::ctl
