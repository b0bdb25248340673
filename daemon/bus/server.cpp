// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/server.h"

#include <cerrno>

namespace wq {
namespace {

// The reply to an order: nothing, or the error in words.
int reply(sd_bus_message* message, const Status& done) {
    if (done) return ::sd_bus_reply_method_return(message, "");
    return ::sd_bus_reply_method_errorf(message, "org.wqtuned1.Error.Failed", "%s",
                                        done.error().text.c_str());
}

bool is_root(sd_bus_message* message) {
    sd_bus_creds* creds = nullptr;
    if (::sd_bus_query_sender_creds(message, SD_BUS_CREDS_EUID, &creds) < 0) return false;
    uid_t uid = 0;
    const bool root = ::sd_bus_creds_get_euid(creds, &uid) >= 0 && uid == 0;
    ::sd_bus_creds_unref(creds);
    return root;
}

// Runs an order for root alone. ORDER is called with the N string arguments of the message.
template <class Order>
int give_order(sd_bus_message* message, std::size_t n, Order order) {
    if (!is_root(message))
        return ::sd_bus_reply_method_errorf(message, SD_BUS_ERROR_ACCESS_DENIED, "only root may do this");
    const char* arguments[2] = {"", ""};
    for (std::size_t i = 0; i < n; i++)
        if (const int r = ::sd_bus_message_read(message, "s", &arguments[i]); r < 0) return r;
    return reply(message, order(arguments[0], arguments[1]));
}

const BusHandlers& handlers(void* server) {
    return static_cast<BusServer*>(server)->handlers();
}

int on_status(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return ::sd_bus_reply_method_return(message, "s", handlers(server).status().c_str());
}

int on_pin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 2, handlers(server).pin);
}

int on_unpin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 1,
                      [&](const char* target, const char*) { return handlers(server).unpin(target); });
}

int on_revert(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 1, [&](const char* target, const char*) {
        return handlers(server).revert(*target == '\0' ? std::nullopt : std::optional<std::string>(target));
    });
}

int on_trial(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 2, handlers(server).trial);
}

int on_reload(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 0, [&](const char*, const char*) { return handlers(server).reload(); });
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

Result<std::unique_ptr<BusServer>> BusServer::start(sd_event* event, BusHandlers handlers) {
    auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    std::unique_ptr<BusServer> server(new BusServer(std::move(*bus), std::move(handlers)));
    int r =
        ::sd_bus_add_object_vtable(server->bus(), nullptr, kBusPath, kBusInterface, kVtable, server.get());
    if (r >= 0) r = ::sd_bus_request_name(server->bus(), kBusName, 0);
    if (r >= 0) r = ::sd_bus_attach_event(server->bus(), event, 0);
    if (r < 0) return fail_errno(std::string("bus name ") + kBusName, -r);
    return server;
}

}  // namespace wq
