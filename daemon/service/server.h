// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/journal.h"
#include "service/bus.h"

namespace wq {

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
