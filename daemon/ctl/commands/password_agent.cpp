// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/commands/password_agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"

namespace wq::ctl {
namespace {

constexpr const char* kAgent = "pkttyagent";
constexpr int kNotify = 3;  // the agent closes this descriptor when it is ready

// dup2() of a descriptor to itself would keep its close-on-exec flag.
bool keep_over_exec(int fd) {
    return fd == kNotify ? ::fcntl(fd, F_SETFD, 0) == 0 : ::dup2(fd, kNotify) == kNotify;
}

// Runs in the child. It is killed when we end, for any reason.
[[noreturn]] void become_agent(int notify) {
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && keep_over_exec(notify))
        ::execlp(kAgent, kAgent, "--notify-fd", "3", "--fallback", nullptr);
    ::_exit(EXIT_FAILURE);
}

}  // namespace

PasswordAgent::PasswordAgent() {
    if (::geteuid() == 0 || ::isatty(STDIN_FILENO) == 0) return;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const Fd ready(ends[0]);
    Fd notify(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) become_agent(notify.get());
    notify = Fd();
    if (pid_ < 0) return;
    char byte = 0;
    while (::read(ready.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

PasswordAgent::~PasswordAgent() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);  // it restores the terminal first
    ::kill(pid_, SIGCONT);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace wq::ctl
