// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "base/result.h"

namespace wq {

// The daemon's names on the bus. They contain a version; an incompatible interface gets a new one.
inline constexpr const char* kBusName = "org.wqtuned1";
inline constexpr const char* kBusPath = "/org/wqtuned1";
inline constexpr const char* kBusInterface = "org.wqtuned1.Manager";

struct BusClose {
    // Does not call sd_bus_flush(), which has no timeout.
    void operator()(sd_bus* bus) const { ::sd_bus_close_unref(bus); }
};
using BusPtr = std::unique_ptr<sd_bus, BusClose>;

struct MessageUnref {
    void operator()(sd_bus_message* message) const { ::sd_bus_message_unref(message); }
};
using MessagePtr = std::unique_ptr<sd_bus_message, MessageUnref>;

// How long we wait for the bus itself, and for systemd.
inline constexpr std::uint64_t kBusPatience = 2'000'000;  // us

// How long an order waits for the daemon. Loading BPF programs takes long on a slow machine.
inline constexpr std::uint64_t kOrderTimeout = 25'000'000;  // us

// Waits until the connection is ready, or for kBusPatience: ETIMEDOUT.
Result<BusPtr> open_system_bus();

// Gives the order METHOD to the daemon. Errors: ESRCH if none runs; EACCES if the caller is not root.
Result<std::string> call_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments);

// Carries out the order METHOD with its arguments. Returns the text of the reply, which is "" for most.
using BusOrder =
    std::function<Result<std::string>(const std::string& method, const std::vector<std::string>& arguments)>;

// org.wqtuned1 on the system bus: orders, and the journal's log level (org.freedesktop.LogControl1). Without
// a bus the daemon still works: this is logged once until there is a bus again.
class BusServer {
  public:
    // Serves calls in EVENT's loop, with lower priority than all other sources there.
    BusServer(sd_event* event, Journal& journal, BusOrder order)
        : event_(event), log_(journal), order_(std::move(order)) {}
    BusServer(const BusServer&) = delete;
    BusServer& operator=(const BusServer&) = delete;

    // Connects and requests the name, if the bus is not there or lost; waits for each at most for
    // kBusPatience. Call it at the start, and at ticks between slots.
    void connect();
    // Whether systemd is restarting the unit of this process: settings then stay in force. False without a
    // bus or a unit, or if systemd does not answer within kBusPatience.
    [[nodiscard]] bool is_restarting() const;
    // Of systemd: "running", "degraded", "starting", ...; "" if it does not answer. Once it has started, it
    // is not asked again.
    const std::string& system_state();

  private:
    [[nodiscard]] bool is_open() const { return bus_ && ::sd_bus_is_open(bus_.get()) > 0; }
    Status serve();
    static int on_order(sd_bus_message* message, void* self, sd_bus_error* error);
    static const sd_bus_vtable kManager[];

    sd_event* event_;
    Journal& log_;
    BusOrder order_;
    BusPtr bus_;
    bool warned_ = false;
    std::string system_state_;
};

}  // namespace wq
