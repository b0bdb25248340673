// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/journal.h"
#include "service/authority.h"
#include "service/bus.h"
#include "service/callers.h"

namespace wq {

// The daemon's functions behind the bus methods.
struct BusHandlers {
    std::function<std::string(bool by_root)> status;
    // The properties: `daemon.state` of the status, and a line as in `systemctl status`. They look at
    // nothing.
    std::function<std::string()> state = [] { return std::string(); };
    std::function<std::string()> summary = [] { return std::string(); };
    std::function<Status(const std::string& target, const std::string& scope)> pin;
    std::function<Status(const std::string& target)> unpin;
    std::function<Status(const std::optional<std::string>& target)> revert;
    std::function<Status(const std::string& target, const std::string& scope)> trial;  // "": next or planned
    std::function<Status()> reload;
    std::function<Status(bool paused)> pause;  // Pause() and Resume()
};

struct SourceUnref {
    void operator()(sd_event_source* source) const { ::sd_event_source_disable_unref(source); }
};
using SourcePtr = std::unique_ptr<sd_event_source, SourceUnref>;

// org.wqtuned1 on the system bus: everybody may read; root and users authorized by polkit may give orders.
// Also serves the journal's log level.
class BusServer {
  public:
    // waiting: for the connection and the name. lost: the connection ended, or another process has the name.
    enum class State { waiting, serving, lost };

    // Requests the name and serves calls in EVENT's loop, with lower priority than all other sources there.
    // Does not wait for the bus: see state(). Error: there is no bus.
    static Result<std::unique_ptr<BusServer>> start(sd_event* event, Journal& journal, BusHandlers handlers);
    // Serves calls on BUS, any connection, whenever BUS is processed. Needs no name.
    static Result<std::unique_ptr<BusServer>> serve(BusPtr bus, Journal& journal, BusHandlers handlers);
    [[nodiscard]] sd_bus* bus() const { return bus_.get(); }
    [[nodiscard]] State state() const;
    // Whether the bus has accepted none of our unsent messages since the last call. A bus stops reading from
    // a sender whose messages are not read by others (dbus-daemon: max_incoming_bytes). A new connection can
    // send again.
    bool is_stuck();
    [[nodiscard]] const std::string& why_lost() const { return why_lost_; }
    [[nodiscard]] const BusHandlers& handlers() const { return handlers_; }
    [[nodiscard]] Callers& callers() { return callers_; }
    [[nodiscard]] Authority& authority() { return authority_; }

  private:
    BusServer(BusPtr bus, BusHandlers handlers)
        : bus_(std::move(bus)), handlers_(std::move(handlers)), callers_(bus_.get()) {}
    static int on_name(sd_bus_message* answer, void* self, sd_bus_error* error);
    static int on_post(sd_event_source* source, void* self);

    BusPtr bus_;
    BusHandlers handlers_;
    State state_ = State::serving;
    std::string why_lost_ = "the connection ended";
    std::uint64_t unsent_ = 0;  // number of unsent messages at the last is_stuck()
    Callers callers_;
    Authority authority_;
    SlotPtr name_;
    SourcePtr post_;
};

}  // namespace wq
