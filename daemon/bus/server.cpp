// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/server.h"

#include <cerrno>
#include <cstring>

#include "bus/authority.h"
#include "bus/log_control.h"

namespace wq {
namespace {

constexpr std::size_t kMaxArgument = 255;  // bytes; a workqueue's name has at most 31

const BusHandlers& handlers(void* server) {
    return static_cast<BusServer*>(server)->handlers();
}

// Has ORDER, called with the N string arguments of the message, carried out for who may do ACTION.
template <class Order>
int give_order(sd_bus_message* message, const char* action, std::size_t n, Order order) {
    const char* arguments[2] = {"", ""};
    for (std::size_t i = 0; i < n; i++) {
        if (const int r = ::sd_bus_message_read(message, "s", &arguments[i]); r < 0) return r;
        // Whoever asks, polkit may take minutes to say no: what waits for it must be small.
        if (std::strlen(arguments[i]) > kMaxArgument)
            return ::sd_bus_reply_method_errorf(message, SD_BUS_ERROR_INVALID_ARGS,
                                                "an argument is longer than %zu bytes", kMaxArgument);
    }
    return carry_out(message, action,
                     [order, one = std::string(arguments[0]), two = std::string(arguments[1])] {
                         return order(one, two);
                     });
}

int on_status(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return ::sd_bus_reply_method_return(message, "s", handlers(server).status(is_from_root(message)).c_str());
}

using Text = const std::string&;

int on_pin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, "org.wqtuned1.pin", 2, handlers(server).pin);
}

int on_unpin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, "org.wqtuned1.unpin", 1,
                      [server](Text target, Text) { return handlers(server).unpin(target); });
}

int on_revert(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, "org.wqtuned1.revert", 1, [server](Text target, Text) {
        return handlers(server).revert(target.empty() ? std::nullopt : std::optional(target));
    });
}

int on_trial(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, "org.wqtuned1.trial", 2, handlers(server).trial);
}

int on_reload(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, "org.wqtuned1.reload", 0,
                      [server](Text, Text) { return handlers(server).reload(); });
}

const sd_bus_vtable kVtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_status,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Pin", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_pin,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Unpin", SD_BUS_ARGS("s", target), SD_BUS_NO_RESULT, on_unpin,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Revert", SD_BUS_ARGS("s", target), SD_BUS_NO_RESULT, on_revert,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Trial", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_trial,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END};

}  // namespace

Result<std::unique_ptr<BusServer>> BusServer::serve(BusPtr bus, Journal& journal, BusHandlers handlers) {
    std::unique_ptr<BusServer> server(new BusServer(std::move(bus), std::move(handlers)));
    int r =
        ::sd_bus_add_object_vtable(server->bus(), nullptr, kBusPath, kBusInterface, kVtable, server.get());
    if (r >= 0) r = add_log_control(server->bus(), journal);
    if (r < 0) return fail_errno(kBusInterface, -r);
    return server;
}

Result<std::unique_ptr<BusServer>> BusServer::start(sd_event* event, Journal& journal, BusHandlers handlers) {
    auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    auto server = serve(std::move(*bus), journal, std::move(handlers));
    if (!server) return server;
    int r = ::sd_bus_request_name((*server)->bus(), kBusName, 0);
    if (r >= 0) r = ::sd_bus_attach_event((*server)->bus(), event, 0);
    if (r < 0) return fail_errno(std::string("bus name ") + kBusName, -r);
    return server;
}

}  // namespace wq
