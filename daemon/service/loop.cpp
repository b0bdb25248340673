// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/loop.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "machine/cpu_files.h"

namespace wq {
namespace {

constexpr std::uint64_t kDefaultTick = 15'000'000;  // if no watchdog is set
constexpr std::uint64_t kAccuracy = 10'000;
constexpr std::int64_t kNoise = 100'000'000;  // ns, because two clocks are read one after the other

}  // namespace

Loop::~Loop() {
    for (const Source& timer : timers_) ::sd_event_source_disable_unref(timer.source);
    ::sd_event_source_disable_unref(hostname_source_);
}

Status Loop::start(const std::string& hostname, std::function<void(Cause)> take) {
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
    for (Source& timer : timers_) {
        const bool ticks = timer.cause == Cause::tick;
        if (r >= 0)
            r = ::sd_event_add_time_relative(event, &timer.source, CLOCK_MONOTONIC, tick_,
                                             ticks ? tick_ / 10 : kAccuracy, on_time, &timer);
        if (r >= 0 && !ticks) r = ::sd_event_source_set_enabled(timer.source, SD_EVENT_OFF);
    }
    if (r < 0) return fail_errno("sd-event", -r);
    const auto on_name = [](sd_event_source* /*source*/, int /*fd*/, std::uint32_t /*events*/, void* self) {
        static_cast<Loop*>(self)->take_(Cause::name);
        return 0;
    };
    hostname_ = Fd(::open(hostname.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (hostname_) (void)::sd_event_add_io(event, &hostname_source_, hostname_.get(), 0, on_name, this);
    return {};
}

void Loop::set(Cause cause, std::optional<std::uint64_t> due) {
    const auto timer = std::ranges::find(timers_, cause, &Source::cause);
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
    const auto& [loop, cause, ours] = *static_cast<Source*>(timer);
    loop->take_(cause);
    if (cause != Cause::tick) return 0;
    ::sd_event_source_set_time_relative(source, loop->tick_);
    return ::sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

CpuWatch::CpuWatch(const Paths& paths)
    : paths_(paths), suspended_(time_suspended()), cpus_(cpu_state(paths)) {}

bool CpuWatch::was_suspended() {
    const std::int64_t now = time_suspended();
    return std::abs(now - std::exchange(suspended_, now)) > kNoise;
}

bool CpuWatch::changed() {
    const std::string now = cpu_state(paths_);
    return now != std::exchange(cpus_, now);
}

}  // namespace wq
