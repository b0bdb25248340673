// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

struct SlotUnref {
    void operator()(sd_bus_slot* slot) const { ::sd_bus_slot_unref(slot); }
};
using SlotPtr = std::unique_ptr<sd_bus_slot, SlotUnref>;

// How long we wait for the bus itself, and for systemd.
inline constexpr std::uint64_t kBusPatience = 2'000'000;  // us

// How long an order waits for the daemon. Loading BPF programs takes long on a slow machine.
inline constexpr std::uint64_t kOrderTimeout = 25'000'000;  // us

// Starts to connect to the system bus. Does not wait.
Result<BusPtr> connect_system_bus();
// Like connect_system_bus(), but waits until the connection is ready. Error: ETIMEDOUT if the bus is silent
// for kBusPatience.
Result<BusPtr> open_system_bus();

// Gives the order METHOD with string arguments to the daemon. Errors: ESRCH if the daemon does not run;
// EACCES if the caller is not root.
Result<std::string> call_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments);

// Returns whether systemd is restarting the unit of this process. Settings then stay in force, so that a
// restart or an upgrade does not switch them back and forth. Returns false without a bus or a unit, or if
// systemd does not answer within kBusPatience. Blocks, so BUS must be a connection on which nobody calls us.
bool unit_is_restarting(sd_bus* bus);

// Returns the state that systemd reports: "running", "degraded", "starting", "maintenance", "stopping"; "" if
// it does not answer within kBusPatience. Blocks, like unit_is_restarting().
std::string state_of_system(sd_bus* bus);

// The daemon's functions behind the bus methods.
struct BusHandlers {
    std::function<Status(const std::string& target, const std::string& scope)> pin;
    std::function<Status(const std::string& target)> unpin;
    std::function<Status(const std::optional<std::string>& target)> revert;
    std::function<std::string()> note;  // what a revert does to @default; "" if nothing
    std::function<Status(const std::string& target, const std::string& scope)>
        compare;  // "": next or planned
    std::function<Status()> reload;
    std::function<Status(bool paused)> pause;  // Pause() and Resume()
};

// org.wqtuned1 on the system bus: orders, and the journal's log level. The bus delivers only what root sends
// (conf/org.wqtuned1.conf).
class BusServer {
  public:
    // waiting: for the connection and the name. lost: the connection ended, or another process has the name.
    enum class State { waiting, serving, lost };

    // Requests the name and serves calls in EVENT's loop, with lower priority than all other sources there.
    // Does not wait for the bus: see state(). Error: there is no bus.
    static Result<std::unique_ptr<BusServer>> start(sd_event* event, Journal& journal, BusHandlers handlers);
    [[nodiscard]] State state() const;
    [[nodiscard]] const std::string& why_lost() const { return why_lost_; }
    [[nodiscard]] const BusHandlers& handlers() const { return handlers_; }

  private:
    BusServer(BusPtr bus, BusHandlers handlers) : bus_(std::move(bus)), handlers_(std::move(handlers)) {}
    static int on_name(sd_bus_message* answer, void* self, sd_bus_error* error);

    BusPtr bus_;
    BusHandlers handlers_;
    State state_ = State::waiting;
    std::string why_lost_ = "the connection ended";
    SlotPtr name_;
};

// org.freedesktop.LogControl1, for `systemctl service-log-level`.
// JOURNAL must outlive BUS. Returns a negative errno on failure, like sd-bus.
int add_log_control(sd_bus* bus, Journal& journal);

}  // namespace wq
