// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "bpf/bpf_workqueues.h"
#include "ctl/command.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "evidence/json_values.h"
#include "machine/bpf_errors.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastInterval = 0.1;  // seconds
constexpr double kMostInterval = 3600;
constexpr int kMostMissed = 10;  // failed samples in a row

void keep_named(TopInterval& interval, const TopOptions& options) {
    const auto is_other = [&](const std::string& name) {
        return !options.names.empty() && std::ranges::find(options.names, name) == options.names.end();
    };
    std::erase_if(interval.workqueues, [&](const WorkqueueRow& row) { return is_other(row.now.name); });
    std::erase_if(interval.functions, [&](const FunctionRow& row) { return is_other(row.workqueue); });
}

std::string json_line(const RecordedInterval& one, bool functions) {
    return json_text(interval_json(one, functions)) + "\n";
}

// Where intervals come from.
class Feed {
  public:
    virtual ~Feed() = default;
    // The next interval; empty if there is none now: after the first sample, if a sample failed temporarily
    // (the next interval is then longer), or at the end.
    virtual Result<std::optional<RecordedInterval>> next() = 0;
    Clock::time_point due = Clock::now();  // when to call next() again
    bool is_over = false;
};

class LiveFeed : public Feed {
  public:
    // RECORDING: the open file, if there is to be one.
    LiveFeed(WorkMonitor& monitor, const TopOptions& options, Fd recording)
        : monitor_(monitor),
          options_(options),
          step_(duration_of(options.interval)),
          file_(std::move(recording)) {
        due += step_;
    }

    Result<std::optional<RecordedInterval>> next() override {
        // A late interval delays the following ones.
        due = begun_ ? std::max(due + step_, Clock::now() + step_ / 2) : due;
        begun_ = true;
        auto sample = monitor_.sample();
        if (!sample && passes(sample.error()) && ++missed_ <= kMostMissed) return std::nullopt;
        if (!sample) return tl::unexpected(sample.error());
        missed_ = 0;
        if (!std::exchange(known_, true))
            for (const auto& name : options_.names)
                if (std::ranges::find(sample->workqueues, name, &KernelWorkqueue::name) ==
                    sample->workqueues.end())
                    return fail("there is no workqueue '" + name + "'", ENOENT);
        auto interval = rates_.add(std::move(*sample));
        if (!interval) return std::nullopt;
        keep_named(*interval, options_);
        RecordedInterval out{std::move(*interval), ::time(nullptr), monitor_.limits(), true};
        if (file_)
            if (auto done = write_all(file_.get(), json_line(out, true)); !done)
                return tl::unexpected(done.error().in(options_.record));
        return out;
    }

  private:
    WorkMonitor& monitor_;
    const TopOptions& options_;
    Clock::duration step_;
    Fd file_;  // the recording
    TopRates rates_;
    int missed_ = 0;  // samples in a row
    bool begun_ = false;
    bool known_ = false;  // whether all named workqueues exist
};

class ReplayFeed : public Feed {
  public:
    explicit ReplayFeed(const TopOptions& options)
        : options_(options), file_(options.replay), error_(errno) {}

    // Error: a line is not valid, or the file is empty or cannot be read.
    Result<std::optional<RecordedInterval>> next() override {
        const std::string& path = options_.replay;
        std::string text;
        if (!file_.is_open()) return fail_errno(path, error_);
        if (!std::getline(file_, text)) {
            if (file_.bad()) return fail_errno(path, errno);
            if (line_ == 0) return fail(path + ": it is empty");
            is_over = true;
            due = Clock::time_point::max();
            return std::nullopt;
        }
        line_++;
        auto out = interval_of(nlohmann::ordered_json::parse(text, nullptr, false));
        if (!out) return fail(fmt::format("{}:{}: {}", path, line_, out.error().text));
        if (options_.functions && !out->has_functions) return fail(path + ": the recording has no functions");
        keep_named(out->interval, options_);
        due = Clock::now() + duration_of(std::clamp(out->interval.seconds, 0.0, kMostInterval));
        return std::move(*out);
    }

  private:
    const TopOptions& options_;
    std::ifstream file_;
    int error_;  // of the opening
    unsigned line_ = 0;
};

std::string text_of(const RecordedInterval& one, const TopOptions& options) {
    return options.json ? json_line(one, options.functions)
                        : interval_text(one.interval, options, terminal_columns());
}

std::string limits_text(const RecordedInterval& one) {
    return one.limits.empty() ? "" : "not seen: " + printable(one.limits);
}

// The note on an interval: what the kernel did not show and, for a replay, when it was recorded.
std::string note_of(const RecordedInterval& one, const TopOptions& options) {
    if (options.replay.empty()) return limits_text(one);
    return fmt::format("recorded {}{}{}", local_time(one.time), one.limits.empty() ? "" : "; ",
                       limits_text(one));
}

// Prints a recording without waiting, and live intervals when they are due.
Status print_intervals(const TopOptions& options, Feed& feed, TopWait& wait) {
    for (unsigned printed = 0;;) {
        const auto one = feed.next();
        if (!one) return tl::unexpected(one.error());
        if (feed.is_over) return {};
        if (*one) {
            if (printed == 0 && !options.json && !(**one).limits.empty()) complain(limits_text(**one));
            const auto written = wait.write(text_of(**one, options));
            if (!written) return tl::unexpected(written.error());
            if (!*written || ++printed == options.iterations) return {};
        }
        const auto due = options.replay.empty() ? feed.due : Clock::now();
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(due, false);
            if (event == TopWait::Event::quit) return {};
        }
    }
}

Status watch_live(const TopOptions& options, Feed& feed, TopWait& wait) {
    const auto opened = TopScreen::open(options);
    if (!opened) return tl::unexpected(opened.error());
    TopScreen& screen = **opened;
    screen.say("Watching...");
    RecordedInterval last;
    for (;;) {
        auto one = feed.next();
        if (!one) return tl::unexpected(one.error());
        if (*one) last = std::move(**one);
        const std::string note = note_of(last, options);
        if (*one) screen.show(last.interval, note);
        if (feed.is_over) screen.note("the end; " + note);
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(feed.due, true);
            if (event == TopWait::Event::quit) return {};
            if (event == TopWait::Event::resized) screen.resize();
            if (event == TopWait::Event::key && !screen.take_keys()) return {};
        }
    }
}

bool shows_screen(const TopOptions& options) {
    const bool text = options.json || options.once || options.iterations;
    return !text && is_terminal() && ::isatty(STDIN_FILENO) == 1 && !terminal_is_dumb();
}

int show(const TopOptions& options, Feed& feed, TopWait& wait) {
    const Status done =
        shows_screen(options) ? watch_live(options, feed, wait) : print_intervals(options, feed, wait);
    return done ? kOk : complain(done.error().text);
}

int run(TopOptions options, const Invocation& invocation) {
    if (!invocation.root.empty()) throw CLI::ValidationError("top watches the running kernel: no --root");
    if (options.once) options.iterations = 1;
    for (auto& name : options.names) name = sysfs_name(name);
    if (!options.replay.empty()) return replay(options);
    const auto monitor = make_bpf_monitor();
    return top(options, *monitor);
}

// The valid keys depend on the kind of table.
void check_order(const TopOptions& options) {
    const auto keys = sort_keys(options.functions);
    if (options.order.key.empty() || std::ranges::find(keys, options.order.key) != keys.end()) return;
    throw CLI::ValidationError(
        "--sort", fmt::format("'{}' is not one of {}", options.order.key, fmt::join(keys, ", ")));
}

}  // namespace

TopWait::TopWait() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&set, one);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
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

int top(const TopOptions& options, WorkMonitor& monitor) {
    TopWait wait;
    const Status done = monitor.attach(options.functions || !options.record.empty(), false);
    if (!done) return complain(done.error().text);
    Fd recording;
    if (!options.record.empty()) {
        recording = Fd(::open(options.record.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
        if (!recording) return complain(fmt::format("{}: {}", options.record, std::strerror(errno)));
    }
    LiveFeed feed(monitor, options, std::move(recording));
    return show(options, feed, wait);
}

int replay(const TopOptions& options) {
    TopWait wait;
    ReplayFeed feed(options);
    return show(options, feed, wait);
}

CommandRun set_up_top(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<TopOptions>();
    add_word(command, "WQ", options->names, word::kWorkqueue, "Workqueues; all if none");
    auto* interval = take_seconds(command.add_option("-d,--interval", options->interval,
                                                     "Seconds from one look to the next; default 1"),
                                  kLeastInterval, kMostInterval);
    auto* iterations =
        take_number(command.add_option("-n,--iterations", options->iterations, "Intervals, then end"), 1U,
                    1'000'000'000U);
    command.add_flag("--once", options->once, "One interval, as a table")->excludes(iterations);
    add_word(command, "--sort", options->order.key, word::kColumn, "The column to sort by");
    command.add_flag("--functions", options->functions, "The functions that keep workers busy");
    command.add_flag("--json", options->json, "Print JSON, for scripts: a line for each interval");
    auto* record = add_word(command, "--record", options->record, word::kFile,
                            "Write a recording for --replay; overwrites the file");
    add_word(command, "--replay", options->replay, word::kFile,
             "Show what --record wrote, instead of the kernel")
        ->excludes(record)
        ->excludes(interval);
    return [options, &invocation] {
        check_order(*options);
        return run(*options, invocation);
    };
}

}  // namespace wq::ctl
