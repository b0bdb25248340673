// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/server.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace wq {
namespace {

// Lower priority than everything else in the loop: signals, timers, udev.
constexpr int kPriority = SD_EVENT_PRIORITY_NORMAL + 10;

const BusHandlers& handlers(void* server) {
    return static_cast<BusServer*>(server)->handlers();
}

// Calls ORDER with the N string arguments of the message, and replies, with NOTE if there is one.
template <class Order>
int give_order(sd_bus_message* message, std::size_t n, Order order,
               const std::function<std::string()>& note = {}) {
    const char* arguments[2] = {"", ""};
    for (std::size_t i = 0; i < n; i++)
        if (const int r = ::sd_bus_message_read(message, "s", &arguments[i]); r < 0) return r;
    const Status done = order(std::string(arguments[0]), std::string(arguments[1]));
    if (done && note) return ::sd_bus_reply_method_return(message, "s", note().c_str());
    if (done) return ::sd_bus_reply_method_return(message, nullptr);
    return ::sd_bus_reply_method_errorf(message, "org.wqtuned1.Error.Failed", "%s",
                                        done.error().text.c_str());
}

using Argument = const std::string&;

int on_pin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 2, handlers(server).pin);
}

int on_unpin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 1, [&](Argument target, Argument) { return handlers(server).unpin(target); });
}

int on_revert(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    const auto revert = [&](Argument target, Argument) {
        return handlers(server).revert(target.empty() ? std::nullopt : std::optional(target));
    };
    return give_order(message, 1, revert, handlers(server).note);
}

int on_compare(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 2, handlers(server).compare);
}

int on_reload(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 0, [&](Argument, Argument) { return handlers(server).reload(); });
}

int on_pause(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 0, [&](Argument, Argument) { return handlers(server).pause(true); });
}

int on_resume(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, 0, [&](Argument, Argument) { return handlers(server).pause(false); });
}

const sd_bus_vtable kManager[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Pin", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_pin, 0),
    SD_BUS_METHOD_WITH_ARGS("Unpin", SD_BUS_ARGS("s", target), SD_BUS_NO_RESULT, on_unpin, 0),
    SD_BUS_METHOD_WITH_ARGS("Revert", SD_BUS_ARGS("s", target), SD_BUS_RESULT("s", note), on_revert, 0),
    SD_BUS_METHOD_WITH_ARGS("Compare", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_compare, 0),
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_pause, 0),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_resume, 0),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_reload, 0),
    SD_BUS_VTABLE_END};

}  // namespace

Result<std::unique_ptr<BusServer>> BusServer::start(sd_event* event, Journal& journal, BusHandlers handlers) {
    auto bus = connect_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    std::unique_ptr<BusServer> server(new BusServer(std::move(*bus), std::move(handlers)));
    sd_bus* const raw = server->bus_.get();
    int r = ::sd_bus_add_object_vtable(raw, nullptr, kBusPath, kBusInterface, kManager, server.get());
    if (r >= 0) r = add_log_control(raw, journal);
    if (r < 0) return fail_errno(kBusInterface, -r);
    (void)::sd_bus_set_close_on_exit(raw, 0);  // it would wait until the bus accepts our unsent messages
    sd_bus_slot* slot = nullptr;
    r = ::sd_bus_attach_event(raw, event, kPriority);
    if (r >= 0) r = ::sd_bus_request_name_async(raw, &slot, kBusName, 0, on_name, server.get());
    server->name_.reset(slot);
    if (r < 0) return fail_errno("the name on the bus", -r);
    return server;
}

BusServer::State BusServer::state() const {
    return ::sd_bus_is_open(bus_.get()) > 0 ? state_ : State::lost;
}

int BusServer::on_name(sd_bus_message* answer, void* self, sd_bus_error* /*error*/) {
    constexpr std::uint32_t kOwner = 1;  // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER
    auto* server = static_cast<BusServer*>(self);
    std::uint32_t given = 0;
    bool owner = false;
    if (const sd_bus_error* error = ::sd_bus_message_get_error(answer); error != nullptr)
        server->why_lost_ = error->message != nullptr ? error->message : error->name;
    else if (::sd_bus_message_read(answer, "u", &given) > 0 && given == kOwner)
        owner = true;
    else
        server->why_lost_ = "another process has the name";
    server->state_ = owner ? State::serving : State::lost;
    return 1;
}

namespace {

// Indexed by syslog level.
constexpr const char* kLevels[] = {"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"};

int get_level(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
              sd_bus_message* reply, void* journal, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", kLevels[static_cast<Journal*>(journal)->max_level()]);
}

int set_level(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
              sd_bus_message* value, void* journal, sd_bus_error* error) {
    const char* word = nullptr;
    if (const int r = ::sd_bus_message_read(value, "s", &word); r < 0) return r;
    for (int level = 0; level < 8; level++) {
        if (std::strcmp(word, kLevels[level]) != 0) continue;
        static_cast<Journal*>(journal)->set_max_level(level);
        return 0;
    }
    return ::sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "'%s' is not a log level", word);
}

int get_target(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
               sd_bus_message* reply, void* /*journal*/, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", Journal::is_connected() ? "journal" : "console");
}

int get_identifier(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
                   sd_bus_message* reply, void* /*journal*/, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", "wq-tuned");
}

const sd_bus_vtable kLogLevel[] = {
    SD_BUS_VTABLE_START(0), SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, 0),
    SD_BUS_PROPERTY("LogTarget", "s", get_target, 0, 0),
    SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END};

}  // namespace

int add_log_control(sd_bus* bus, Journal& journal) {
    return ::sd_bus_add_object_vtable(bus, nullptr, "/org/freedesktop/LogControl1",
                                      "org.freedesktop.LogControl1", kLogLevel, &journal);
}

}  // namespace wq
