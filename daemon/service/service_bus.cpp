// SPDX-License-Identifier: LGPL-2.1-or-later
// The calls that the daemon serves on the bus, and the questions that it asks there.
#include <utility>

#include "base/clock.h"
#include "service/service.h"

namespace wq {

BusHandlers Service::bus_handlers() {
    BusHandlers out;
    // A kill switch may have been set since the last check.
    out.pin = [this](const auto& target, const auto& scope) {
        check_switches();
        return ordered(engine_->orders().pin(target, scope));
    };
    out.unpin = [this](const auto& target) {
        check_switches();
        return ordered(engine_->orders().unpin(target));
    };
    out.revert = [this](const auto& target) {
        check_switches();
        return ordered(engine_->orders().revert(target));
    };
    out.note = [this] { return engine_->orders().note(); };
    out.compare = [this](const auto& target, const auto& scope) {
        check_switches();
        return ordered(experiment_->order(target, scope));
    };
    out.pause = [this](bool paused) {
        pause_.set(paused);
        experiment_->pause(paused);
        return ordered({});
    };
    out.reload = [this] { return reload(); };
    return out;
}

// An order may have ended or begun a comparison.
Status Service::ordered(Status done) {
    quiet_.worked();
    experiment_->check();
    arm_slot();
    publish();
    show_summary();
    return done;
}

// Without a bus the daemon still works; ticks try to connect again.
void Service::start_bus() {
    if (!is_machine()) return;
    bus_.reset();
    auto bus = BusServer::start(event_.get(), log_, bus_handlers());
    if (bus)
        bus_ = std::move(*bus);
    else
        warn_of_bus(bus.error().text);
}

// Callers shall find the daemon on the bus after READY=1. Waits at most kBusPatience, in case the bus is
// silent.
void Service::wait_for_bus() {
    const std::uint64_t end = monotonic_us() + kBusPatience;
    for (std::uint64_t now = monotonic_us(); now < end; now = monotonic_us()) {
        if (!bus_ || bus_->state() != BusServer::State::waiting) break;
        if (::sd_event_run(event_.get(), end - now) < 0) break;
    }
    if (bus_ && bus_->state() == BusServer::State::waiting) warn_of_bus("the system bus does not answer");
    if (bus_ && bus_->state() == BusServer::State::lost) warn_of_bus(bus_->why_lost());
}

void Service::check_bus() {
    if (bus_ && bus_->state() == BusServer::State::serving) {
        bus_warned_ = false;
    } else if (!bus_ || bus_->state() == BusServer::State::lost) {
        start_bus();
    }
}

// Warns once, until there is a bus again.
void Service::warn_of_bus(const std::string& why) {
    if (!std::exchange(bus_warned_, true))
        log_.write({LOG_WARNING, Event::none, "no D-Bus interface yet: " + why});
}

// Uses its own connection, like is_restarted(). Asks only now and then, because that takes time; once systemd
// has started, its state seldom changes.
const std::string& Service::system_state() {
    const bool settled = system_state_ == "running" || system_state_ == "degraded";
    const std::uint64_t now = monotonic_us();
    if (asked_system_at_ != 0 && now - asked_system_at_ < (settled ? 600 : 60) * kSecond)
        return system_state_;
    asked_system_at_ = now;
    system_state_.clear();
    if (!bus_ || bus_->state() != BusServer::State::serving) return system_state_;
    const auto bus = open_system_bus();
    if (bus) system_state_ = state_of_system(bus->get());
    return system_state_;
}

// Uses its own connection: waiting on the connection with our well-known name would queue orders meanwhile.
bool Service::is_restarted() const {
    if (!bus_ || bus_->state() != BusServer::State::serving) return false;
    const auto bus = open_system_bus();
    return bus && unit_is_restarting(bus->get());
}

}  // namespace wq
