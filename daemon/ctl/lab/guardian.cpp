// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/guardian.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "ctl/lab/restore_left.h"
#include "ctl/machine.h"
#include "owned/restore.h"

namespace wq::ab {

namespace {

// Repeats until the processes are gone, at most 5 s, because their system calls may still run. A process that
// waits for a disk may remain.
void kill_all(pid_t group) {
    constexpr int kLooks = 5000;
    for (int i = 0; i < kLooks && ::kill(-group, SIGKILL) == 0; i++) ::usleep(1000);
}

[[noreturn]] void guard(const Fd& pipe, const std::function<bool()>& restore) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    ::setsid();
    ::prctl(PR_SET_NAME, "wq-ab-guardian");
    pid_t group = 0;
    for (;;) {
        pid_t told = 0;
        const ssize_t n = ::read(pipe.get(), &told, sizeof told);
        if (n < 0 && errno == EINTR) continue;
        if (n != sizeof told) break;
        group = told;
    }
    // Kill the command before restoring, because it must not run under other settings than intended.
    if (group > 1) kill_all(group);
    ::_exit(restore() ? 0 : 1);
}

}  // namespace

Result<Guardian> Guardian::start(const std::function<bool()>& restore) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("the guardian's pipe", errno);
    Fd end(ends[0]);
    Fd alive(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("the guardian", errno);
    if (pid == 0) {
        alive = Fd();
        guard(end, restore);
    }
    return Guardian(pid, std::move(alive));
}

Guardian::Guardian(Guardian&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), alive_(std::move(other.alive_)) {}

Guardian::~Guardian() {
    (void)finish();
}

void Guardian::watch(pid_t group) const {
    (void)!::write(alive_.get(), &group, sizeof group);
}

Result<bool> Guardian::finish() {
    if (pid_ < 0) return true;
    alive_ = Fd();
    const pid_t pid = std::exchange(pid_, -1);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return fail_errno("the guardian", errno);
    if (!WIFEXITED(status)) return fail("the guardian was killed");
    return WEXITSTATUS(status) == 0;
}

Result<Fd> lock_out_daemon(const Paths& paths) {
    auto lock = take_lock(paths);
    if (!lock && lock.error().code == EWOULDBLOCK)
        return fail("wq-tuned is running, or another ab or bench: systemctl stop wq-tuned first",
                    EWOULDBLOCK);
    return lock;
}

Status run_guarded(const Guarded& what) {
    auto guardian = Guardian::start(what.restore);
    if (!guardian) return tl::unexpected(guardian.error());
    what.watched(&*guardian);
    if (const auto moved = what.on_machine ? into_own_scope(guardian->pid(), what.command) : Status{}; !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = what.work();
    what.watched(nullptr);
    const auto finished = guardian->finish();
    const bool back = finished ? *finished : what.restore();
    return back || !done ? done : fail(what.left);
}

}  // namespace wq::ab
