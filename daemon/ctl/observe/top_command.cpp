// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>

#include "bpf/work_monitor.h"
#include "ctl/json_values.h"
#include "ctl/machine.h"
#include "ctl/observe/top_recording.h"
#include "ctl/observe/top_screen.h"
#include "ctl/observe/top_wait.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "machine/bpf_errors.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastInterval = 0.1;  // seconds
constexpr double kMostInterval = 3600;
constexpr int kMostMissed = 10;  // failed samples in a row

// The end times of the intervals. A late interval delays the following ones.
class Schedule {
  public:
    explicit Schedule(double interval) : step_(duration_of(interval)), due_(Clock::now() + step_) {}
    [[nodiscard]] Clock::time_point due() const { return due_; }
    void next() { due_ = std::max(due_ + step_, Clock::now() + step_ / 2); }

  private:
    Clock::duration step_;
    Clock::time_point due_;
};

// Takes samples one after the other.
class Looks {
  public:
    explicit Looks(WorkMonitor& monitor) : monitor_(monitor) {}

    // The interval from the previous sample to this one. Empty if there was no previous sample, or if this
    // one failed temporarily; the next interval is then longer.
    Result<std::optional<TopInterval>> next() {
        auto sample = monitor_.sample();
        if (!sample && passes(sample.error()) && ++missed_ <= kMostMissed) return std::nullopt;
        if (!sample) return tl::unexpected(sample.error());
        missed_ = 0;
        return rates_.add(std::move(*sample));
    }

  private:
    WorkMonitor& monitor_;
    TopRates rates_;
    int missed_ = 0;  // in a row
};

std::string json_line(const RecordedInterval& one, bool functions) {
    return json_text(interval_json(one.interval, functions, one.limits, one.time)) + "\n";
}

// Where intervals come from.
class Feed {
  public:
    virtual ~Feed() = default;
    // The next interval; empty if there is none now: after the first sample, if a sample failed temporarily,
    // or at the end.
    virtual Result<std::optional<RecordedInterval>> next() = 0;
    [[nodiscard]] virtual bool is_over() const = 0;
    // When to call next() again.
    [[nodiscard]] virtual Clock::time_point due() const = 0;
    // A note about the end of the feed; "" if there is none.
    [[nodiscard]] virtual std::string end_note() const { return ""; }
};

class LiveFeed : public Feed {
  public:
    LiveFeed(WorkMonitor& monitor, double interval, std::optional<TopRecorder> recorder)
        : monitor_(monitor), looks_(monitor), schedule_(interval), recorder_(std::move(recorder)) {}

    Result<std::optional<RecordedInterval>> next() override {
        if (begun_) schedule_.next();
        begun_ = true;
        auto interval = looks_.next();
        if (!interval) return tl::unexpected(interval.error());
        if (!*interval) return std::nullopt;
        RecordedInterval out{std::move(**interval), ::time(nullptr), monitor_.limits(), true};
        if (recorder_) {
            if (auto done = recorder_->add(json_line(out, true)); !done) return tl::unexpected(done.error());
        }
        return out;
    }
    [[nodiscard]] bool is_over() const override { return false; }
    [[nodiscard]] Clock::time_point due() const override { return schedule_.due(); }

  private:
    WorkMonitor& monitor_;
    Looks looks_;
    Schedule schedule_;
    std::optional<TopRecorder> recorder_;
    bool begun_ = false;
};

class ReplayFeed : public Feed {
  public:
    ReplayFeed(TopRecording recording, const TopOptions& options)
        : recording_(std::move(recording)), options_(options) {}

    Result<std::optional<RecordedInterval>> next() override {
        auto out = recording_.next();
        if (!out) return out;
        if (!*out) {
            over_ = true;
            if (seen_) return out;
            return fail(fmt::format("there is no workqueue '{}' in {}", fmt::join(options_.names, "', '"),
                                    options_.replay));
        }
        if (options_.functions && !(**out).has_functions)
            return fail(options_.replay + ": the recording has no functions");
        keep_named((**out).interval);
        due_ = Clock::now() + duration_of(std::clamp((**out).interval.seconds, 0.0, kMostInterval));
        return out;
    }
    [[nodiscard]] bool is_over() const override { return over_; }
    [[nodiscard]] Clock::time_point due() const override { return over_ ? Clock::time_point::max() : due_; }
    [[nodiscard]] std::string end_note() const override {
        return recording_.cut_off() ? options_.replay + ": the recording is cut off here" : "";
    }

  private:
    void keep_named(TopInterval& interval) {
        const auto& names = options_.names;
        if (names.empty()) return;
        const auto other = [&](const std::string& name) {
            return std::ranges::find(names, name) == names.end();
        };
        std::erase_if(interval.workqueues, [&](const WorkqueueRow& row) { return other(row.now.name); });
        std::erase_if(interval.functions, [&](const FunctionRow& row) { return other(row.workqueue); });
        seen_ = seen_ || !interval.workqueues.empty();
    }

    TopRecording recording_;
    const TopOptions& options_;
    Clock::time_point due_ = Clock::now();
    bool over_ = false;
    bool seen_ = options_.names.empty();  // whether one of the named workqueues was seen so far
};

std::string text_of(const RecordedInterval& one, const TopOptions& options) {
    return options.json ? json_line(one, options.functions)
                        : interval_text(one.interval, options, terminal_columns());
}

std::string limits_text(const RecordedInterval& one) {
    return one.limits.empty() ? "" : "not seen: " + one.limits;
}

// The note on an interval: what the kernel did not show and, for a replay, when it was recorded.
std::string note_of(const RecordedInterval& one, const TopOptions& options) {
    if (options.replay.empty()) return limits_text(one);
    const auto time = static_cast<std::time_t>(one.time);
    std::tm local{};
    ::localtime_r(&time, &local);
    char text[32];
    std::strftime(text, sizeof(text), "%F %T", &local);
    return fmt::format("recorded {}{}{}", text, one.limits.empty() ? "" : "; ", limits_text(one));
}

// Prints a recording without waiting, and live intervals when they are due.
Status print_intervals(const TopOptions& options, Feed& feed, TopWait& wait) {
    for (unsigned printed = 0;;) {
        const auto one = feed.next();
        if (!one) return tl::unexpected(one.error());
        if (feed.is_over()) {
            if (!feed.end_note().empty()) complain(feed.end_note());
            return {};
        }
        if (*one) {
            if (printed == 0 && !options.json && !(**one).limits.empty()) complain(limits_text(**one));
            const auto written = wait.write(text_of(**one, options));
            if (!written) return tl::unexpected(written.error());
            if (!*written || ++printed == options.iterations) return {};
        }
        const auto due = options.replay.empty() ? feed.due() : Clock::now();
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(due, false);
            if (event == TopWait::Event::quit) return {};
        }
    }
}

Status watch_live(const TopOptions& options, Feed& feed, TopWait& wait) {
    auto screen = TopScreen::open(options);
    if (!screen) return tl::unexpected(screen.error());
    screen->say("Watching...");
    RecordedInterval last;
    for (;;) {
        auto one = feed.next();
        if (!one) return tl::unexpected(one.error());
        if (*one) last = std::move(**one);
        const std::string note = note_of(last, options);
        if (*one) screen->show(last.interval, note);
        if (feed.is_over()) screen->note((feed.end_note().empty() ? "the end; " : "cut off here; ") + note);
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(feed.due(), true);
            if (event == TopWait::Event::quit) return {};
            if (event == TopWait::Event::resized) screen->resize();
            if (event == TopWait::Event::key && !screen->take_keys()) return {};
        }
    }
}

bool shows_screen(const TopOptions& options) {
    const bool text = options.json || options.once || options.iterations;
    return !text && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
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

int top(const TopOptions& options, WorkMonitor& monitor) {
    TopWait wait;
    std::optional<TopRecorder> recorder;
    if (!options.record.empty()) {
        auto opened = TopRecorder::open(options.record);
        if (!opened) return complain(opened.error().text);
        recorder = std::move(*opened);
    }
    const Status done = monitor.attach(options.names, options.functions || recorder);
    if (!done) return complain(done.error().text);
    LiveFeed feed(monitor, options.interval, std::move(recorder));
    return show(options, feed, wait);
}

int replay(const TopOptions& options) {
    TopWait wait;
    auto recording = TopRecording::open(options.replay);
    if (!recording) return complain(recording.error().text);
    ReplayFeed feed(std::move(*recording), options);
    return show(options, feed, wait);
}

CommandRun set_up_top(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<TopOptions>();
    command.add_option("WQ", options->names, "Workqueues; all if none")
        ->type_name(word::kWorkqueue)
        ->check(not_empty);
    auto* interval =
        command
            .add_option("-d,--interval", options->interval, "Seconds from one look to the next; default 1")
            ->type_name(word::kNumber)
            ->check(seconds_between(kLeastInterval, kMostInterval));
    auto* iterations =
        take_number(command.add_option("-n,--iterations", options->iterations, "Intervals, then end"), 1U,
                    1'000'000'000U);
    command.add_flag("--once", options->once, "One interval, as a table")->excludes(iterations);
    command.add_option("--sort", options->order.key, "The column to sort by")
        ->type_name(word::kColumn)
        ->check(not_empty);
    command.add_flag("--functions", options->functions, "The functions that keep workers busy");
    command.add_flag("--json", options->json, "Print JSON, for scripts: a line for each interval");
    auto* record =
        command
            .add_option("--record", options->record, "Write a recording for --replay; overwrites the file")
            ->type_name(word::kFile)
            ->check(not_empty);
    command.add_option("--replay", options->replay, "Show what --record wrote, instead of the kernel")
        ->type_name(word::kFile)
        ->check(not_empty)
        ->excludes(record)
        ->excludes(interval);
    return [options, &invocation] {
        check_order(*options);
        return run(*options, invocation);
    };
}

}  // namespace wq::ctl
