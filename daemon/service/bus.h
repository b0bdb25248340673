// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace wq {

// The daemon's names on the bus. They carry a version: what changes incompatibly gets another.
inline constexpr const char* kBusName = "org.wqtuned1";
inline constexpr const char* kBusPath = "/org/wqtuned1";
inline constexpr const char* kBusInterface = "org.wqtuned1.Manager";

struct BusClose {
    // Without sd_bus_flush(), which waits as long as the bus likes.
    void operator()(sd_bus* bus) const { ::sd_bus_close_unref(bus); }
};
using BusPtr = std::unique_ptr<sd_bus, BusClose>;

struct MessageUnref {
    void operator()(sd_bus_message* message) const { ::sd_bus_message_unref(message); }
};
using MessagePtr = std::unique_ptr<sd_bus_message, MessageUnref>;

struct SlotUnref {
    void operator()(sd_bus_slot* slot) const { ::sd_bus_slot_unref(slot); }
};
using SlotPtr = std::unique_ptr<sd_bus_slot, SlotUnref>;

// How long anybody waits for the bus itself.
inline constexpr std::uint64_t kBusPatience = 2'000'000;  // us

// How long an order waits for the daemon: loading BPF takes its time on a slow machine.
inline constexpr std::uint64_t kOrderTimeout = 25'000'000;  // us
// How long an order waits for a user who is asked for a password.
inline constexpr std::uint64_t kPatience = 120'000'000;  // us

// Begins to connect to the system bus, and does not wait.
Result<BusPtr> connect_system_bus();
// As connect_system_bus(), and waits until it can be used. Error: ETIMEDOUT where it says nothing for
// kBusPatience.
Result<BusPtr> open_system_bus();

// Calls METHOD of the daemon with string arguments. The reply's string, "" where it has none. A daemon that
// does not run is ESRCH; it is never started by a call. INTERACTIVE: polkit may ask for a password first.
Result<std::string> call_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments,
                                bool interactive = false);

// Whether the unit that this process belongs to is being stopped in order to be started again: then settings
// stay, so that a restart or an upgrade does not flap. False where there is no bus or no unit, and where
// systemd does not say so within kBusPatience. Waits: BUS must be one over which nobody calls us.
bool unit_is_restarting(sd_bus* bus);

// What systemd says of itself: "running", "degraded", "starting", "maintenance", "stopping"; "" where it does
// not say so within kBusPatience. Waits, as unit_is_restarting().
std::string state_of_system(sd_bus* bus);

}  // namespace wq
