// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "service/bus.h"

namespace wq::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

constexpr int kGrace = 2000;  // ms for a command to end after SIGTERM

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

// Reading end, writing end.
Result<std::array<Fd, 2>> make_pipe(const char* what) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(what, errno);
    return std::array{Fd(ends[0]), Fd(ends[1])};
}

class Child {
  public:
    Child(const Processes& processes, Output output, bool to_the_end)
        : processes_(processes), output_(output), to_the_end_(to_the_end) {}

    Status start(const std::vector<std::string>& words) {
        const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!null) return fail_errno("/dev/null", errno);
        auto error = make_pipe("pipe"), captured = make_pipe("pipe");
        if (!error || !captured) return tl::unexpected(error ? captured.error() : error.error());
        const int out = output_ == Output::drop ? null.get() : (*captured)[1].get();
        std::vector<char*> argv;
        for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        const pid_t parent = ::getpid();
        began_ = Clock::now();
        pid_ = ::fork();
        if (pid_ < 0) return fail_errno("fork", errno);
        if (pid_ == 0) exec(argv.data(), null.get(), out, (*error)[1].get(), parent);
        ::setpgid(pid_, pid_);  // also in the parent, because parent and child race
        (*error)[1] = Fd();
        int code = 0;
        if (::read((*error)[0].get(), &code, sizeof code) == sizeof code) {
            (void)reap();
            return fail_errno(words.front(), code);
        }
        // glibc 2.36 declares pidfd_open() only for C.
        pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        if (!pidfd_) {
            code = errno;
            ::kill(-pid_, SIGKILL);
            (void)reap();
            return fail_errno("pidfd_open", code);
        }
        captured_ = std::move((*captured)[0]);
        ::fcntl(captured_.get(), F_SETFL, O_NONBLOCK);
        return {};
    }

    // Returns when the command has ended. Background processes may keep its output open.
    Status follow(Ran& run) {
        for (;;) {
            std::array<pollfd, 3> wait{pollfd{pidfd_.get(), POLLIN, 0},
                                       {to_the_end_ ? -1 : processes_.interrupts.fd(), POLLIN, 0},
                                       {captured_.get(), POLLIN, 0}};
            if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return fail_errno("poll", errno);
            if (wait[0].revents != 0) run.wall = Clock::now() - began_;
            if (auto taken = take_output(run.output); !taken) return taken;
            if (wait[0].revents != 0) return {};
            if (wait[1].revents == 0) continue;
            if (auto go_on = processes_.interrupts.check(); !go_on) return go_on;
        }
    }

    // Waits for the command, which has ended or was killed. Its PID cannot be reused before this.
    [[nodiscard]] int reap() const {
        processes_.guardian.watch(0);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        return status;
    }
    // Ends the command's whole group and waits for the command.
    void end() const {
        ::kill(-pid_, SIGTERM);
        pollfd wait{pidfd_.get(), POLLIN, 0};
        ::poll(&wait, 1, kGrace);
        ::kill(-pid_, SIGKILL);
        (void)reap();
    }

  private:
    // Runs after fork(), so it only uses async-signal-safe functions. ERROR: a pipe for a failed exec.
    [[noreturn]] void exec(char* const* words, int null, int out, int error, pid_t parent) const {
        // If we are killed by SIGKILL, the command is killed too, even if the guardian was killed.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);
        ::setpgid(0, 0);
        // Tell the guardian from here, before the group can have a second process.
        processes_.guardian.watch(::getpid());
        processes_.interrupts.undo(to_the_end_);
        if ((output_ != Output::capture_all || ::dup2(out, STDERR_FILENO) >= 0) &&
            ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0)
            ::execvp(words[0], words);
        const int code = errno;
        (void)!::write(error, &code, sizeof code);
        ::_exit(127);
    }

    // Reads the available output. Error: more than kMostOutput bytes.
    Status take_output(std::string& text) {
        std::array<char, 65536> buffer{};
        while (captured_) {
            const ssize_t n = ::read(captured_.get(), buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) break;
            if (n <= 0) captured_ = Fd();
            text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
            if (text.size() > kMostOutput)
                return fail(fmt::format("more than {} bytes of output", kMostOutput), EFBIG);
        }
        return {};
    }

    const Processes& processes_;
    const Output output_;
    const bool to_the_end_;
    pid_t pid_ = -1;
    Fd pidfd_;
    Fd captured_;  // read end of its stdout
    Clock::time_point began_;
};

// Until its setpgid(), a child is in our process group. A signal to the group at that time would end the
// child when the signal is unblocked. Ignoring a pending signal drops it.
void drop_pending() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (const int signal : kEnding) {
        struct sigaction now {};
        if (::sigaction(signal, &ignore, &now) == 0) ::sigaction(signal, &now, nullptr);
    }
}

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

constexpr unsigned kScopeLooks = 100;
constexpr useconds_t kScopePause = 20'000;  // us, between two looks

Status ask_systemd(const std::string& unit, const std::string& command, pid_t pid) {
    const auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    const std::string description = "Puts back what wq-tunectl " + command + " has set";
    const int r = ::sd_bus_call_method(bus->get(), "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                       "org.freedesktop.systemd1.Manager", "StartTransientUnit", nullptr,
                                       nullptr, "ssa(sv)a(sa(sv))", unit.c_str(), "fail", 3,  //
                                       "Description", "s", description.c_str(), "CollectMode", "s",
                                       "inactive-or-failed",  //
                                       "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0);
    return r < 0 ? Status(fail_errno(unit, -r)) : Status{};
}

}  // namespace

Interrupts::Interrupts() {
    sigset_t watched;
    ::sigemptyset(&watched);
    for (const int signal : kEnding) {
        struct sigaction now {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) ::sigaddset(&watched, signal);
    }
    fd_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    ::sigaddset(&watched, SIGTSTP);
    ::sigprocmask(SIG_BLOCK, &watched, &before_);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Status Interrupts::check() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return {};
    return fail("interrupted by " + signal_name(static_cast<int>(info.ssi_signo)), EINTR);
}

void Interrupts::undo(bool drop) const {
    if (drop) drop_pending();
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Result<Ran> Processes::run(const std::vector<std::string>& words, Output output, bool to_the_end) const {
    if (auto go_on = to_the_end ? Status{} : interrupts.check(); !go_on) return tl::unexpected(go_on.error());
    Child child(*this, output, to_the_end);
    if (auto started = child.start(words); !started) return tl::unexpected(started.error());
    Ran run;
    if (auto done = child.follow(run); !done) {
        child.end();
        return tl::unexpected(done.error());
    }
    const int status = child.reap();
    if (WIFSIGNALED(status))
        run.failure = "killed by " + signal_name(WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        run.failure = fmt::format("exit code {}", WEXITSTATUS(status));
    return run;
}

Status Processes::must_run(const std::vector<std::string>& words, const std::string& shown,
                           bool to_the_end) const {
    const auto ran = run(words, Output::capture_all, to_the_end);
    if (!ran) return tl::unexpected(ran.error().code == EINTR ? ran.error() : ran.error().in(shown));
    if (ran->failure.empty()) return {};
    return fail(fmt::format("{}: {}{}", shown, ran->failure, end_of_output(ran->output)));
}

Status Processes::shell(const std::string& command, bool to_the_end) const {
    return must_run({"/bin/sh", "-c", command}, fmt::format("'{}'", printable(command)), to_the_end);
}

std::string end_of_output(std::string output) {
    constexpr std::size_t kMost = 2000;  // bytes
    while (output.ends_with('\n')) output.pop_back();
    if (output.size() > kMost) output = "..." + output.substr(output.size() - kMost);
    for (std::size_t at = 0; (at = output.find('\n', at)) != std::string::npos;) output.replace(at, 1, "; ");
    return output.empty() ? "" : ": " + printable(output);
}

Status Guardian::start(const std::function<bool()>& restore) {
    auto pipe = make_pipe("the guardian's pipe");
    if (!pipe) return tl::unexpected(pipe.error());
    alive_ = std::move((*pipe)[1]);
    pid_ = ::fork();
    if (pid_ > 0) return {};
    const int code = errno;
    alive_ = Fd();
    if (pid_ < 0) return fail_errno("the guardian", code);
    guard((*pipe)[0], restore);
}

void Guardian::watch(pid_t group) const {
    if (alive_) (void)!::write(alive_.get(), &group, sizeof group);
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

Status Guardian::into_own_scope(const std::string& command) const {
    if (::sd_booted() <= 0) return {};
    const std::string unit = fmt::format("wq-tunectl-{}-{}.scope", command, pid_);
    if (auto asked = ask_systemd(unit, command, pid_); !asked) return asked;
    // The reply only means that a job was queued; the process moves when the job runs.
    for (unsigned i = 0; i < kScopeLooks; i++) {
        const auto cgroup = read_file(fmt::format("/proc/{}/cgroup", pid_));
        if (cgroup && cgroup->find(unit) != std::string::npos) return {};
        ::usleep(kScopePause);
    }
    return fail(unit + ": did not start", ETIMEDOUT);
}

}  // namespace wq::lab
