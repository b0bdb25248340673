// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/top/top_screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "ctl/top/top_wait.h"
#include "fake_monitor.h"

namespace wq::ctl {
namespace {

// A process on a terminal of its own: what it does there nobody reads but read_some().
class OnTerminal {
  public:
    // DOES gets what it can tell the test by, a byte each.
    OnTerminal(const char* term, unsigned short lines, const std::function<int(const Fd& tell)>& does) {
        const winsize size{lines, 100, 0, 0};
        int ends[2], master = -1;
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        told_ = Fd(ends[0]);
        const Fd tell(ends[1]);
        pid_ = ::forkpty(&master, nullptr, nullptr, &size);
        if (pid_ == 0) {
            ::setenv("TERM", term, 1);
            ::unsetenv("LINES");
            ::unsetenv("COLUMNS");
            ::_exit(does(tell));
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

    void wait_until_told() {
        char byte = 0;
        EXPECT_EQ(::read(told_.get(), &byte, 1), 1) << "it ended";
    }
    void kill(int signal) const { ::kill(pid_, signal); }
    // As waitpid() has it; -1: it did not end in a minute.
    int status() {
        for (int i = 0; i < 600; i++) {
            int status = 0;
            if (::waitpid(pid_, &status, WNOHANG) == pid_) {
                pid_ = -1;
                return status;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return -1;
    }
    [[nodiscard]] termios settings() const {
        termios out{};
        EXPECT_EQ(::tcgetattr(master_.get(), &out), 0);
        return out;
    }

  private:
    pid_t pid_ = -1;
    Fd master_, told_;
};

void tell_by(const Fd& tell) {
    if (::write(tell.get(), "x", 1) != 1) ::_exit(99);
}

TopInterval interval(unsigned rows) {
    TopInterval out;
    out.seconds = 1;
    out.workqueues.resize(rows);
    for (auto& row : out.workqueues) row.now.name = "a-workqueue";
    return out;
}

// A terminal's buffer has 64 KiB; each of these lines has more than 30 characters that are not blank.
TEST(TopScreen, ASignalEndsItWhereTheTerminalTakesNothing) {
    OnTerminal process("xterm", 6000, [](const Fd& tell) {
        const TopWait wait;
        auto screen = TopScreen::open({});
        if (!screen) return 98;
        tell_by(tell);
        for (;;) screen->show(interval(6000), "");
    });
    process.wait_until_told();
    const auto during = process.settings();
    EXPECT_EQ(during.c_lflag & (ECHO | ICANON), 0U);
    EXPECT_EQ(during.c_iflag & IXON, 0U) << "Ctrl-S would stop it";
    process.kill(SIGTERM);
    const int status = process.status();
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    const auto after = process.settings();
    EXPECT_EQ(after.c_lflag & (ECHO | ICANON), ECHO | ICANON);
    EXPECT_EQ(after.c_iflag & IXON, IXON);
}

TEST(TopScreen, NeedsACursorThatMoves) {
    for (const char* term : {"dumb", "no-such-terminal"}) {
        OnTerminal process(term, 24, [&](const Fd&) {
            const auto screen = TopScreen::open({});
            if (screen) return 1;
            const std::string expected =
                std::string("this terminal cannot be used (TERM=") + term + "); --once prints a table";
            return screen.error().text == expected ? 0 : 2;
        });
        const int status = process.status();
        ASSERT_TRUE(WIFEXITED(status)) << status;
        EXPECT_EQ(WEXITSTATUS(status), 0) << term;
    }
}

}  // namespace
}  // namespace wq::ctl
