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

struct Child {
    pid_t pid = -1;
    Fd pidfd;
    Fd output;  // read end of its stdout; only if it is captured
    Clock::time_point began;
};

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

// The context of a command.
struct Around {
    const Processes& processes;
    Output output;
    bool to_the_end;
    void tell(pid_t group) const {
        if (processes.guardian != nullptr) processes.guardian->watch(group);
    }
    [[nodiscard]] std::optional<int> signal() const {
        return to_the_end ? std::nullopt : processes.interrupts.next();
    }
    [[nodiscard]] bool captures() const { return output != Output::drop && output != Output::show; }
};

struct Plumbing {
    Fd null;
    std::array<Fd, 2> error;   // reports a failed exec
    std::array<Fd, 2> output;  // the command's stdout; open only if it is captured
};

Status open_pipe(std::array<Fd, 2>& out) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("pipe", errno);
    out = {Fd(ends[0]), Fd(ends[1])};
    return {};
}

// Runs after fork(), so it only uses async-signal-safe functions.
[[noreturn]] void exec_command(const Plumbing& pipes, char* const* words, const Around& around,
                               pid_t parent) {
    const auto give_up = [&] {
        const int code = errno;
        (void)!::write(pipes.error[1].get(), &code, sizeof code);
        ::_exit(127);
    };
    // If we are killed by SIGKILL, the command is killed too, even if the guardian was killed.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::setpgid(0, 0);
    // Tell the guardian from here, before the group can have a second process.
    around.tell(::getpid());
    around.processes.interrupts.undo(around.to_the_end);
    const int out = pipes.output[1]                 ? pipes.output[1].get()
                    : around.output == Output::show ? STDERR_FILENO
                                                    : pipes.null.get();
    if (around.output == Output::capture_all && ::dup2(out, STDERR_FILENO) < 0) give_up();
    if (::dup2(pipes.null.get(), STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0) give_up();
    ::execvp(words[0], words);
    give_up();
    ::_exit(127);
}

Result<Child> start(const std::vector<std::string>& words, const Around& around) {
    Plumbing pipes;
    pipes.null = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!pipes.null) return fail_errno("/dev/null", errno);
    if (auto made = open_pipe(pipes.error); !made) return tl::unexpected(made.error());
    if (around.captures())
        if (auto made = open_pipe(pipes.output); !made) return tl::unexpected(made.error());
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    Child child;
    const pid_t parent = ::getpid();
    child.began = Clock::now();
    child.pid = ::fork();
    if (child.pid < 0) return fail_errno("fork", errno);
    if (child.pid == 0) exec_command(pipes, argv.data(), around, parent);
    ::setpgid(child.pid, child.pid);  // also in the parent, because parent and child race
    pipes.error[1] = Fd();
    int code = 0;
    if (::read(pipes.error[0].get(), &code, sizeof code) == sizeof code) {
        around.tell(0);
        ::waitpid(child.pid, nullptr, 0);
        return fail_errno(words.front(), code);
    }
    // glibc 2.36 declares pidfd_open() only for C.
    child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    if (!child.pidfd) {
        code = errno;
        ::kill(-child.pid, SIGKILL);
        around.tell(0);
        ::waitpid(child.pid, nullptr, 0);
        return fail_errno("pidfd_open", code);
    }
    child.output = std::move(pipes.output[0]);
    if (child.output) ::fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
    return child;
}

// Waits for the command, which has ended or was killed. Its PID cannot be reused before this.
int reap(const Child& child, const Around& around) {
    around.tell(0);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// Ends the command's whole group and waits for the command.
void end(const Child& child, const Around& around) {
    ::kill(-child.pid, SIGTERM);
    pollfd wait{child.pidfd.get(), POLLIN, 0};
    ::poll(&wait, 1, kGrace);
    ::kill(-child.pid, SIGKILL);
    reap(child, around);
}

// Reads the available output of CHILD. Error: more than kMostOutput bytes.
Status take_output(Child& child, std::string& text) {
    std::array<char, 65536> buffer{};
    while (child.output) {
        const ssize_t n = ::read(child.output.get(), buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            child.output = Fd();
            break;
        }
        text.append(buffer.data(), static_cast<std::size_t>(n));
        if (text.size() > kMostOutput)
            return fail(fmt::format("more than {} bytes of output", kMostOutput), EFBIG);
    }
    return {};
}

tl::unexpected<Error> interrupted(int signal) {
    return fail("interrupted by " + signal_name(signal), EINTR);
}

// Returns when the command has ended. Background processes may keep its output open.
Status follow(Child& child, const Around& around, Ran& run) {
    for (;;) {
        std::array<pollfd, 3> wait{pollfd{child.pidfd.get(), POLLIN, 0},
                                   {around.to_the_end ? -1 : around.processes.interrupts.fd(), POLLIN, 0},
                                   {child.output.get(), POLLIN, 0}};
        if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return fail_errno("poll", errno);
        if (wait[0].revents != 0) run.wall = Clock::now() - child.began;
        if (auto taken = take_output(child, run.output); !taken) return taken;
        if (wait[0].revents != 0) return {};
        if (wait[1].revents == 0) continue;
        if (const auto signal = around.signal()) return interrupted(*signal);
    }
}

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
    const auto signal = next();
    return signal ? Status(interrupted(*signal)) : Status{};
}

Interrupts::~Interrupts() {
    undo(true);
}

void Interrupts::undo(bool drop) const {
    if (drop) drop_pending();
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Interrupts::next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return {};
    return static_cast<int>(info.ssi_signo);
}

Result<Ran> Processes::run(const std::vector<std::string>& words, Output output, bool to_the_end) const {
    const Around around{*this, output, to_the_end};
    if (const auto signal = around.signal()) return interrupted(*signal);
    auto child = start(words, around);
    if (!child) return tl::unexpected(child.error());
    Ran run;
    if (auto done = follow(*child, around, run); !done) {
        end(*child, around);
        return tl::unexpected(done.error());
    }
    const int status = reap(*child, around);
    if (output == Output::capture_and_show) (void)write_all(STDERR_FILENO, run.output);
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
