// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/loop.h"

#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <ctime>
#include <utility>

namespace wq {

constexpr std::uint64_t kDefaultTick = 15'000'000;  // if no watchdog is set
constexpr std::uint64_t kAccuracy = 10'000;

void react(Cause cause, bool whole, const std::string& state, Engine& engine, Experiment& experiment) {
    if (cause != Cause::order && cause != Cause::slot) engine.tick(whole);
    experiment.check();
    if (cause == Cause::tick) experiment.tick(state);
    if (cause == Cause::slot) experiment.on_time();
}

Status Loop::start(std::function<void(Cause)> take) {
    take_ = std::move(take);
    sd_event* event = nullptr;
    int r = ::sd_event_default(&event);
    event_.reset(event);
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, signal);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
        if (r >= 0) r = ::sd_event_add_signal(event, nullptr, signal, on_signal, this);
    std::uint64_t watchdog = 0;
    tick_ = ::sd_watchdog_enabled(0, &watchdog) > 0 ? watchdog / 2 : kDefaultTick;
    for (Timer& timer : timers_) {
        const bool ticks = timer.cause == Cause::tick;
        if (r >= 0)
            r = ::sd_event_add_time_relative(event, &timer.source, CLOCK_MONOTONIC, tick_,
                                             ticks ? tick_ / 10 : kAccuracy, on_time, &timer);
        if (r >= 0) r = ::sd_event_source_set_floating(timer.source, 1);  // takes a reference of its own
        ::sd_event_source_unref(timer.source);
        if (r >= 0 && !ticks) r = ::sd_event_source_set_enabled(timer.source, SD_EVENT_OFF);
    }
    return r < 0 ? fail_errno("sd-event", -r) : Status();
}

void Loop::set(Cause cause, std::optional<std::uint64_t> due) {
    const auto timer = std::ranges::find(timers_, cause, &Timer::cause);
    if (due) ::sd_event_source_set_time(timer->source, *due);
    ::sd_event_source_set_enabled(timer->source, due ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

Status Loop::run() {
    const int r = ::sd_event_loop(event());
    return r < 0 ? fail_errno("event loop", -r) : Status();
}

int Loop::on_signal(sd_event_source* /*source*/, const signalfd_siginfo* info, void* self) {
    static_cast<Loop*>(self)->take_(info->ssi_signo == SIGHUP ? Cause::reload : Cause::end);
    return 0;
}

// The next tick is counted from the end of this one.
int Loop::on_time(sd_event_source* source, std::uint64_t /*now*/, void* timer) {
    const auto& [loop, cause, ours] = *static_cast<Timer*>(timer);
    loop->take_(cause);
    if (cause != Cause::tick) return 0;
    ::sd_event_source_set_time_relative(source, loop->tick_);
    return ::sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

}  // namespace wq
