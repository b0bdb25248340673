// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/render/pager.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

// The pager as a shell command; "" for none.
std::string pager_command() {
    for (const char* name : {"SYSTEMD_PAGER", "PAGER"})
        if (const char* value = ::getenv(name); value != nullptr)
            return std::string(value) == "cat" ? "" : value;
    return "command -v less >/dev/null && exec less; exec cat";
}

// A script that runs PAGER, or `cat` if the shell cannot run PAGER, so that the output is not lost. SIGINT is
// for the pager; the shell survives it and waits until the pager ends.
std::string or_cat(const std::string& pager) {
    return "trap : INT\n" + pager + "\ncase $? in 126|127) exec cat;; esac";
}

void become(const std::string& command, int end) {
    ::dup2(end, STDIN_FILENO);
    // Like systemd's tools: exit if the output fits, keep colours, do not chop lines; root cannot run
    // commands from the pager.
    ::setenv("LESS", "FRXMK", 0);
    if (::geteuid() == 0) ::setenv("LESSSECURE", "1", 0);
    ::execl("/bin/sh", "sh", "-c", or_cat(command).c_str(), nullptr);
    ::_exit(127);
}

}  // namespace

Pager::Pager(bool wanted) {
    const std::string command =
        wanted && ::isatty(STDOUT_FILENO) == 1 && !terminal_is_dumb() ? pager_command() : "";
    int ends[2];
    if (command.empty()) return;
    remember_terminal();
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) become(command, ends[0]);
    if (pid_ > 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        (void)::signal(SIGPIPE, SIG_DFL);  // the user may quit the pager before the end of the output
    }
    ::close(ends[0]);
    ::close(ends[1]);
}

Pager::~Pager() {
    if (pid_ <= 0) return;
    (void)std::fflush(stdout);
    ::close(STDOUT_FILENO);
    (void)::signal(SIGINT, SIG_IGN);  // SIGINT is for the pager
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace wq::ctl
