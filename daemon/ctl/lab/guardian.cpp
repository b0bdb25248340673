// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <syslog.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "ctl/complaints.h"
#include "service/bus.h"

namespace wq::lab {

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

constexpr std::uint64_t kBusTimeout = 2'000'000;  // us
constexpr unsigned kScopeLooks = 100;
constexpr useconds_t kScopePause = 20'000;  // us, between two looks

Status ask_systemd(const std::string& unit, const std::string& command, pid_t pid) {
    const auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    ::sd_bus_set_method_call_timeout(bus->get(), kBusTimeout);
    const std::string description = "Puts back what wq-tunectl " + command + " has set";
    const int r = ::sd_bus_call_method(bus->get(), "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                       "org.freedesktop.systemd1.Manager", "StartTransientUnit", nullptr,
                                       nullptr, "ssa(sv)a(sa(sv))", unit.c_str(), "fail", 3,  //
                                       "Description", "s", description.c_str(), "CollectMode", "s",
                                       "inactive-or-failed",  //
                                       "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0);
    return r < 0 ? Status(fail_errno(unit, -r)) : Status{};
}

// Lets systemd move PID, one of our processes, into its own scope unit (wq-tunectl-COMMAND-PID.scope), so
// that it survives if our whole cgroup is killed (a logout, `systemctl kill`, the OOM killer). Returns when
// the process is there; waits at most two seconds for the bus, and as long for systemd. If systemd is not the
// init system, does nothing and returns no error.
Status into_own_scope(pid_t pid, const std::string& command) {
    if (::sd_booted() <= 0) return {};
    const std::string unit = fmt::format("wq-tunectl-{}-{}.scope", command, pid);
    if (auto asked = ask_systemd(unit, command, pid); !asked) return asked;
    // The reply only means that a job was queued; the process moves when the job runs.
    for (unsigned i = 0; i < kScopeLooks; i++) {
        const auto cgroup = read_file(fmt::format("/proc/{}/cgroup", pid));
        if (cgroup && cgroup->find(unit) != std::string::npos) return {};
        ::usleep(kScopePause);
    }
    return fail(unit + ": did not start", ETIMEDOUT);
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

Status run_guarded(const Lab& lab, const Guarded& what) {
    const auto restore = [&] {
        ctl::Complaints log(LOG_NOTICE);
        return lab.put_back(log, false);
    };
    auto guardian = Guardian::start(restore);
    if (!guardian) return tl::unexpected(guardian.error());
    lab.processes.guardian = &*guardian;
    if (const auto moved = lab.paths.root.empty() ? into_own_scope(guardian->pid(), what.command) : Status{};
        !moved)
        ctl::complain("the guardian is in our cgroup; killing that cgroup also kills the guardian: " +
                      moved.error().text);
    auto done = what.work();
    lab.processes.guardian = nullptr;
    const auto finished = guardian->finish();
    const bool back = finished ? *finished : restore();
    return back || !done ? done : fail(what.left);
}

}  // namespace wq::lab
