// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <functional>
#include <optional>
#include <string>

#include "bus/bus.h"
#include "kernel/journal.h"

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

// org.wqtuned1 on the system bus: reading for all, orders for root and whom polkit allows them; and the
// journal's level.
class BusServer {
  public:
    // Takes the name and answers from EVENT's loop. Error: another daemon has the name (EEXIST), or no bus.
    static Result<std::unique_ptr<BusServer>> start(sd_event* event, Journal& journal, BusHandlers handlers);
    // Answers on BUS, whatever it is connected to, whenever that is processed. It needs no name.
    static Result<std::unique_ptr<BusServer>> serve(BusPtr bus, Journal& journal, BusHandlers handlers);
    [[nodiscard]] sd_bus* bus() const { return bus_.get(); }
    [[nodiscard]] const BusHandlers& handlers() const { return handlers_; }

  private:
    BusServer(BusPtr bus, BusHandlers handlers) : bus_(std::move(bus)), handlers_(std::move(handlers)) {}
    BusPtr bus_;
    BusHandlers handlers_;
};

}  // namespace wq
