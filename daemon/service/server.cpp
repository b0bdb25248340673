// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/server.h"

#include <malloc.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "base/version.h"
#include "service/log_control.h"

namespace wq {
namespace {

constexpr std::size_t kMaxArgument = 255;  // bytes; a workqueue's name has at most 31

// Lower priority than everything else in the loop: signals, timers, udev.
constexpr int kPriority = SD_EVENT_PRIORITY_NORMAL + 10;

const BusHandlers& handlers(void* server) {
    return static_cast<BusServer*>(server)->handlers();
}

int when_known(sd_bus_message* message, void* server, Callers::Then then) {
    return static_cast<BusServer*>(server)->callers().when_known(message, std::move(then));
}

// Runs ORDER, called with the N string arguments of the message, if the sender is authorized for ACTION.
template <class Order>
int give_order(sd_bus_message* message, void* server, const char* action, std::size_t n, Order order) {
    const char* arguments[2] = {"", ""};
    for (std::size_t i = 0; i < n; i++) {
        if (const int r = ::sd_bus_message_read(message, "s", &arguments[i]); r < 0) return r;
        // polkit may take minutes to answer, so a pending request must be small.
        if (std::strlen(arguments[i]) > kMaxArgument)
            return ::sd_bus_reply_method_errorf(message, SD_BUS_ERROR_INVALID_ARGS,
                                                "an argument is longer than %zu bytes", kMaxArgument);
    }
    auto ordered = [order, one = std::string(arguments[0]), two = std::string(arguments[1])] {
        return order(one, two);
    };
    return when_known(message, server, [server, action, ordered](sd_bus_message* call, bool by_root) {
        return static_cast<BusServer*>(server)->authority().carry_out(call, by_root, action, ordered);
    });
}

int on_status(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return when_known(message, server, [server](sd_bus_message* call, bool by_root) {
        const std::string text = handlers(server).status(by_root);
        if (!by_root && !Callers::has_room(::sd_bus_message_get_bus(call), text.size()))
            return ::sd_bus_reply_method_errorf(call, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                                "earlier replies are not read, try again later");
        return ::sd_bus_reply_method_return(call, "s", text.c_str());
    });
}

using Argument = const std::string&;

int on_pin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.pin", 2, handlers(server).pin);
}

int on_unpin(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.unpin", 1,
                      [server](Argument target, Argument) { return handlers(server).unpin(target); });
}

int on_revert(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.revert", 1, [server](Argument target, Argument) {
        return handlers(server).revert(target.empty() ? std::nullopt : std::optional(target));
    });
}

int on_trial(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.trial", 2, handlers(server).trial);
}

int on_reload(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.reload", 0,
                      [server](Argument, Argument) { return handlers(server).reload(); });
}

int on_pause(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.pause", 0,
                      [server](Argument, Argument) { return handlers(server).pause(true); });
}

int on_resume(sd_bus_message* message, void* server, sd_bus_error* /*error*/) {
    return give_order(message, server, "org.wqtuned1.resume", 0,
                      [server](Argument, Argument) { return handlers(server).pause(false); });
}

// Anybody may read these, also before it is known who calls: they cost nothing, and the budget limits the
// calls.
int get_version(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
                sd_bus_message* reply, void* /*server*/, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", version());
}

int get_state(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
              sd_bus_message* reply, void* server, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", handlers(server).state().c_str());
}

int get_summary(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
                sd_bus_message* reply, void* server, sd_bus_error* /*error*/) {
    return ::sd_bus_message_append(reply, "s", handlers(server).summary().c_str());
}

const sd_bus_vtable kManager[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("State", "s", get_state, 0, 0),
    SD_BUS_PROPERTY("Summary", "s", get_summary, 0, 0),
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
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_pause, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_resume,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_reload,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END};

}  // namespace

Result<std::unique_ptr<BusServer>> BusServer::serve(BusPtr bus, Journal& journal, BusHandlers handlers) {
    std::unique_ptr<BusServer> server(new BusServer(std::move(bus), std::move(handlers)));
    int r =
        ::sd_bus_add_object_vtable(server->bus(), nullptr, kBusPath, kBusInterface, kManager, server.get());
    if (r >= 0) r = add_log_control(server->bus(), journal);
    if (r < 0) return fail_errno(kBusInterface, -r);
    return server;
}

Result<std::unique_ptr<BusServer>> BusServer::start(sd_event* event, Journal& journal, BusHandlers handlers) {
    // Returns the memory of long messages to the kernel at once. By default, malloc would keep it after the
    // first few.
    ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    auto bus = connect_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    auto server = serve(std::move(*bus), journal, std::move(handlers));
    if (!server) return server;
    sd_bus* const raw = (*server)->bus();
    (void)::sd_bus_set_close_on_exit(raw, 0);  // it would wait until the bus accepts our unsent messages
    sd_bus_slot* slot = nullptr;
    int r = ::sd_bus_attach_event(raw, event, kPriority);
    if (r >= 0) r = ::sd_bus_request_name_async(raw, &slot, kBusName, 0, on_name, server->get());
    if (r < 0) return fail_errno("the name on the bus", -r);
    (*server)->name_.reset(slot);
    sd_event_source* post = nullptr;
    r = ::sd_event_add_post(event, &post, on_post, server->get());
    if (r >= 0) r = ::sd_event_source_set_priority(post, kPriority);
    (*server)->post_.reset(post);
    if (r < 0) return fail_errno("sd-event", -r);
    (*server)->state_ = State::waiting;
    return server;
}

// sd-bus processes one message per iteration of the loop, and an iteration costs more than dropping a
// message of a flood. So process several messages per iteration.
int BusServer::on_post(sd_event_source* /*source*/, void* self) {
    constexpr int kMostInATurn = 32;
    for (int i = 0; i < kMostInATurn; i++)
        if (::sd_bus_process(static_cast<BusServer*>(self)->bus(), nullptr) <= 0) break;
    return 0;
}

bool BusServer::is_stuck() {
    std::uint64_t unsent = 0;
    (void)::sd_bus_get_n_queued_write(bus_.get(), &unsent);
    const std::uint64_t before = std::exchange(unsent_, unsent);
    return before > 0 && unsent >= before;
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

}  // namespace wq
