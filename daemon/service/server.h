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
#include "service/bus.h"
#include "service/callers.h"

namespace wq {

// What the bus asks of the daemon.
struct BusHandlers {
    std::function<std::string(bool by_root)> status;
    std::function<Status(const std::string& target, const std::string& scope)> pin;
    std::function<Status(const std::string& target)> unpin;
    std::function<Status(const std::optional<std::string>& target)> revert;
    std::function<Status(const std::string& target, const std::string& scope)> trial;  // "": the planned one
    std::function<Status()> reload;
};

struct SourceUnref {
    void operator()(sd_event_source* source) const { ::sd_event_source_disable_unref(source); }
};
using SourcePtr = std::unique_ptr<sd_event_source, SourceUnref>;

// org.wqtuned1 on the system bus: reading for all, orders for root and whom polkit allows them; and the
// journal's level.
class BusServer {
  public:
    // waiting: for the bus to let us in and give us the name. lost: it ended, or another process has the
    // name.
    enum class State { waiting, serving, lost };

    // Takes the name and answers from EVENT's loop, after everything else that is due there. Does not wait
    // for the bus: state() tells what became of it. Error: there is no bus.
    static Result<std::unique_ptr<BusServer>> start(sd_event* event, Journal& journal, BusHandlers handlers);
    // Answers on BUS, whatever it is connected to, whenever that is processed. It needs no name.
    static Result<std::unique_ptr<BusServer>> serve(BusPtr bus, Journal& journal, BusHandlers handlers);
    [[nodiscard]] sd_bus* bus() const { return bus_.get(); }
    [[nodiscard]] State state() const;
    // Whether the bus has taken nothing of what waits to be sent since the last call. A bus reads no more
    // from who has sent too much that others do not read (dbus-daemon: max_incoming_bytes); a new connection
    // may send again.
    bool is_stuck();
    [[nodiscard]] const std::string& why_lost() const { return why_lost_; }
    [[nodiscard]] const BusHandlers& handlers() const { return handlers_; }
    [[nodiscard]] Callers& callers() { return callers_; }

  private:
    BusServer(BusPtr bus, BusHandlers handlers)
        : bus_(std::move(bus)), handlers_(std::move(handlers)), callers_(bus_.get()) {}
    static int on_name(sd_bus_message* answer, void* self, sd_bus_error* error);
    static int on_post(sd_event_source* source, void* self);

    BusPtr bus_;
    BusHandlers handlers_;
    State state_ = State::serving;
    std::string why_lost_ = "the connection ended";
    std::uint64_t unsent_ = 0;  // messages, at the last is_stuck()
    Callers callers_;
    SlotPtr name_;
    SourcePtr post_;
};

}  // namespace wq
