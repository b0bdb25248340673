// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-event.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "experiment/experiment.h"
#include "targets/engine.h"

namespace wq {

// Why the daemon acts. Times in this file are us of CLOCK_MONOTONIC.
enum class Cause {
    start,
    look,    // a burst of events is over, or a failure is to be tried again
    slot,    // the time of an experiment
    tick,    // half of the watchdog's time is over
    order,   // from the bus
    reload,  // SIGHUP, an order, or a hostname that other host tables match
    end,     // SIGTERM or SIGINT
};

// What CAUSE makes ENGINE and EXPERIMENT do, in this order. WHOLE: look at all targets. STATE: systemd's, at
// a tick. Simulations call it too, with a clock of their own.
void react(Cause cause, bool whole, const std::string& state, Engine& engine, Experiment& experiment);

// The event loop, with the daemon's signals and timers.
class Loop {
  public:
    Loop() = default;
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    // Makes the loop. It will call TAKE with each signal (reload, end), timer (look, slot) and tick.
    Status start(std::function<void(Cause)> take);
    [[nodiscard]] sd_event* event() const { return event_.get(); }
    // Sets the timer of CAUSE (look or slot); empty: it is off.
    void set(Cause cause, std::optional<std::uint64_t> due);
    Status run();
    void end() { ::sd_event_exit(event_.get(), 0); }

  private:
    struct Timer {
        Loop* loop;
        Cause cause;
        sd_event_source* source = nullptr;  // owned by the loop
    };
    struct EventUnref {
        void operator()(sd_event* event) const { ::sd_event_unref(event); }
    };
    static int on_signal(sd_event_source* source, const signalfd_siginfo* info, void* self);
    static int on_time(sd_event_source* source, std::uint64_t now, void* timer);

    std::unique_ptr<sd_event, EventUnref> event_;
    std::function<void(Cause)> take_;
    std::uint64_t tick_ = 0;
    std::array<Timer, 3> timers_{{{this, Cause::look}, {this, Cause::slot}, {this, Cause::tick}}};
};

// When the next look at all targets is due: 200 ms after the last of a burst of events, at most 1 s after the
// first. A failure is tried again after 250 ms, and then after twice the time, up to 4 s.
class Agenda {
  public:
    void event(std::uint64_t now) {
        first_ = std::min(first_, now);
        due_ = std::min(now + kQuiet, first_ + kMost);
    }
    // Call it after a look. WANTS_RETRY: something failed that may succeed later.
    void looked(bool wants_retry, std::uint64_t now) {
        first_ = kNone;
        due_.reset();
        if (wants_retry) due_ = now + (kFirstRetry << std::min(retries_, 4U));
        retries_ = wants_retry ? retries_ + 1 : 0;
    }
    [[nodiscard]] std::optional<std::uint64_t> due() const { return due_; }

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    static constexpr std::uint64_t kQuiet = 200'000;
    static constexpr std::uint64_t kMost = 1'000'000;
    static constexpr std::uint64_t kFirstRetry = 250'000;

    std::uint64_t first_ = kNone;  // of a burst that goes on
    std::optional<std::uint64_t> due_;
    unsigned retries_ = 0;  // in a row
};

}  // namespace wq
