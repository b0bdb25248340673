// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/password_agent.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "kernel/fd.h"

namespace wq::ctl {
namespace {

constexpr const char* kAgent = "pkttyagent";
constexpr int kNotify = 3;  // its descriptor for saying that it is ready: it closes it

}  // namespace

PasswordAgent::PasswordAgent() {
    if (::geteuid() == 0 || ::isatty(STDIN_FILENO) == 0) return;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const Fd ready(ends[0]);
    Fd notify(ends[1]);
    posix_spawn_file_actions_t actions;
    if (::posix_spawn_file_actions_init(&actions) != 0) return;
    const char* arguments[] = {kAgent, "--notify-fd", "3", "--fallback", nullptr};
    int error = ::posix_spawn_file_actions_adddup2(&actions, notify.get(), kNotify);
    if (error == 0)
        error = ::posix_spawnp(&pid_, kAgent, &actions, nullptr, const_cast<char**>(arguments), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        pid_ = 0;
        return;
    }
    notify = Fd();
    char byte = 0;
    while (::read(ready.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

PasswordAgent::~PasswordAgent() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);  // it puts the terminal back first
    ::kill(pid_, SIGCONT);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace wq::ctl
