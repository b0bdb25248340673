// SPDX-License-Identifier: LGPL-2.1-or-later
// The calls that the daemon serves on the bus, and the questions that it asks there.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "kernel/features.h"
#include "kernel/read_isolation.h"
#include "service/host_status.h"
#include "service/service.h"
#include "service/status.h"

namespace wq {

BusHandlers Service::bus_handlers() {
    BusHandlers out;
    out.status = [this](bool by_root) { return status(by_root); };
    out.state = [this] { return state(); };
    out.summary = [this] { return summary(); };
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
    out.trial = [this](const auto& target, const auto& scope) {
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

// Any user may ask, at any rate, and looking at all targets is expensive. So callers other than root may get
// the cached answer.
std::string Service::status(bool by_root) {
    const std::string* said = by_root ? nullptr : answer_.at(monotonic_us());
    if (said != nullptr) return *said;
    const std::int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    std::string text = look_for_status();
    answer_.keep(text, monotonic_us(),
                 static_cast<std::uint64_t>(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / 1000);
    return text;
}

std::string Service::look_for_status() {
    quiet_.worked();
    masks_->look(engine_->policy(), engine_->observing());
    masks_->record();
    engine_->look();
    experiment_->check();  // if an external writer was noticed, a trial ends now, not at the next tick
    arm_slot();
    engine_->record();
    if (!features_) features_ = read_features(paths_, engine_->kernel());
    nlohmann::json document = status_json(*engine_, experiment_.get(), state(), policy_state_);
    document["masks"] = masks_json(*masks_);
    document["isolation"] = isolation_json(read_isolation(paths_), counters_->watched());
    document["kernel"] = features_json(engine_->kernel(), *features_, engine_->applier().names_cut_short());
    document["kernel"]["pods"] = pods_json(engine_->kernel(), engine_->inventory().topology());
    publish();
    return dump_json(document);
}

// An order may have ended or started a trial.
Status Service::ordered(Status done) {
    quiet_.worked();
    answer_.drop();
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
    if (bus_ && bus_->is_stuck()) {
        warn_of_bus("the bus does not accept messages; connecting anew");
        start_bus();
    } else if (bus_ && bus_->state() == BusServer::State::serving) {
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

// Uses its own connection, like is_restarted().
std::string Service::system_state() const {
    if (!bus_ || bus_->state() != BusServer::State::serving) return "";
    const auto bus = open_system_bus();
    return bus ? state_of_system(bus->get()) : "";
}

// Uses its own connection, whose name nobody knows: waiting on the connection with our well-known name would
// read all messages that others send meanwhile.
bool Service::is_restarted() const {
    if (!bus_ || bus_->state() != BusServer::State::serving) return false;
    const auto bus = open_system_bus();
    return bus && unit_is_restarting(bus->get());
}

}  // namespace wq
