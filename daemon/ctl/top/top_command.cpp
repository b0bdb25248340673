// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/top/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>

#include "bpf/bpf_top.h"
#include "ctl/machine.h"
#include "ctl/render/terminal.h"
#include "ctl/setting_option.h"
#include "ctl/top/top_screen.h"
#include "ctl/top/top_wait.h"
#include "kernel/bpf_errors.h"

namespace wq::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastInterval = 0.1;  // seconds
constexpr double kMostInterval = 3600;
constexpr int kMostMissed = 10;  // failed samples in a row

Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

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

std::string text_of(const TopInterval& interval, const TopOptions& options, const std::string& limits) {
    if (!options.json) return interval_text(interval, options, terminal_columns());
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    return interval_json(interval, options, limits).dump(-1, ' ', false, kReplace) + "\n";
}

Status print_intervals(const TopOptions& options, WorkMonitor& monitor, TopWait& wait) {
    Looks looks(monitor);
    Schedule schedule(options.interval);
    if (!options.json && !monitor.limits().empty()) complain(monitor.limits());
    for (unsigned printed = 0;;) {
        const auto interval = looks.next();
        if (!interval) return tl::unexpected(interval.error());
        if (*interval) {
            const auto written = wait.write(text_of(**interval, options, monitor.limits()));
            if (!written) return tl::unexpected(written.error());
            if (!*written || ++printed == options.iterations) return {};
        }
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(schedule.due(), false);
            if (event == TopWait::Event::quit) return {};
        }
        schedule.next();
    }
}

Status watch_live(const TopOptions& options, WorkMonitor& monitor, TopWait& wait) {
    auto screen = TopScreen::open(options);
    if (!screen) return tl::unexpected(screen.error());
    screen->say("Watching...");
    Looks looks(monitor);
    Schedule schedule(options.interval);
    for (;;) {
        auto interval = looks.next();
        if (!interval) return tl::unexpected(interval.error());
        if (*interval) screen->show(std::move(**interval), monitor.limits());
        for (auto event = TopWait::Event::resized; event != TopWait::Event::time;) {
            event = wait.until(schedule.due(), true);
            if (event == TopWait::Event::quit) return {};
            if (event == TopWait::Event::resized) screen->resize();
            if (event == TopWait::Event::key && !screen->take_keys()) return {};
        }
        schedule.next();
    }
}

int run(TopOptions options, const Invocation& invocation) {
    if (!invocation.root.empty()) throw CLI::ValidationError("top watches the running kernel: no --root");
    if (options.once) options.iterations = 1;
    for (auto& name : options.names) name = sysfs_name(name);
    const auto monitor = make_bpf_monitor();
    return top(options, *monitor);
}

std::string interval_error(const std::string& word) {
    double seconds = 0;
    const bool number = CLI::detail::lexical_cast(word, seconds);
    if (number && seconds >= kLeastInterval && seconds <= kMostInterval) return "";
    return fmt::format("'{}' is not a number of seconds from {} to {}", word, kLeastInterval, kMostInterval);
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
    const bool text = options.json || options.once || options.iterations;
    const bool live = !text && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
    TopWait wait;
    Status done = monitor.attach(options.names, options.functions);
    if (done) done = live ? watch_live(options, monitor, wait) : print_intervals(options, monitor, wait);
    return done ? kOk : complain(done.error().text);
}

CommandRun set_up_top(CLI::App& command, const Invocation& invocation) {
    const auto options = std::make_shared<TopOptions>();
    command.add_option("WQ", options->names, "Workqueues; all if none")
        ->type_name(word::kWorkqueue)
        ->check(not_empty);
    command.add_option("-d,--interval", options->interval, "Seconds from one look to the next; 1")
        ->type_name(word::kNumber)
        ->check(interval_error);
    auto* iterations = command.add_option("-n,--iterations", options->iterations, "Intervals, then end")
                           ->type_name(word::kNumber)
                           ->check(decimal)
                           ->check(CLI::Range(1, 1'000'000'000));
    command.add_flag("--once", options->once, "One interval, as a table")->excludes(iterations);
    command.add_option("--sort", options->order.key, "The column to sort by")
        ->type_name(word::kColumn)
        ->check(not_empty);
    command.add_flag("--functions", options->functions, "The functions that keep workers busy");
    command.add_flag("--json", options->json, "For machines: a line for each interval");
    return [options, &invocation] {
        check_order(*options);
        return run(*options, invocation);
    };
}

}  // namespace wq::ctl
