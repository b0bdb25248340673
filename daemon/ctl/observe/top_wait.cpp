// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_wait.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace wq::ctl {

TopWait::TopWait() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&set, one);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

TopWait::~TopWait() {
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

// If another reader took the signal, it does not count as a request to quit.
TopWait::Event TopWait::next_signal() {
    signalfd_siginfo got{};
    if (::read(signals_.get(), &got, sizeof(got)) != sizeof(got)) return Event::resized;
    return got.ssi_signo == SIGWINCH ? Event::resized : Event::quit;
}

TopWait::Event TopWait::until(std::chrono::steady_clock::time_point due, bool keys) {
    for (;;) {
        const auto left = due - std::chrono::steady_clock::now();
        const auto ns =
            std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(left).count(), 0);
        const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
        std::array<pollfd, 2> fds{{{signals_.get(), POLLIN, 0}, {keys ? STDIN_FILENO : -1, POLLIN, 0}}};
        const int ready = ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
        if (ready == 0) return Event::time;
        if (ready < 0 && errno != EINTR) return Event::quit;
        if (ready < 0) continue;  // interrupted by stop and continue
        if (fds[0].revents != 0) return next_signal();
        return (fds[1].revents & (POLLHUP | POLLERR)) != 0 ? Event::quit : Event::key;
    }
}

// Writes TEXT completely as long as the output accepts data, because an incomplete line is useless.
Result<bool> TopWait::write(std::string_view text) {
    while (!text.empty()) {
        std::array<pollfd, 2> fds{{{signals_.get(), POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}}};
        if (::poll(fds.data(), fds.size(), -1) < 0) {
            if (errno != EINTR) return fail_errno("poll", errno);
            continue;  // interrupted by stop and continue
        }
        if (fds[1].revents == 0) {
            if (next_signal() == Event::quit) return false;
            continue;
        }
        // A writable pipe accepts this many bytes without blocking.
        const ssize_t done =
            ::write(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (done >= 0)
            text.remove_prefix(static_cast<std::size_t>(done));
        else if (errno != EINTR && errno != EAGAIN)
            return fail_errno("standard output", errno);
    }
    return true;
}

}  // namespace wq::ctl
