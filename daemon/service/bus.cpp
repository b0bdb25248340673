// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/bus.h"

#include <syslog.h>
#include <systemd/sd-login.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace wq {
namespace {

struct BusError {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    ~BusError() { ::sd_bus_error_free(&error); }
};

struct Free {
    void operator()(char* text) const { ::free(text); }
};
using Text = std::unique_ptr<char, Free>;

bool is_absent(const sd_bus_error& error) {
    return ::sd_bus_error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0 ||
           ::sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) != 0;
}

// If the daemon ends during a call, the error is NoReply, as after a timeout; but the name has no owner.
bool went_away(sd_bus* bus, const sd_bus_error& error) {
    return ::sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY) != 0 &&
           ::sd_bus_get_name_creds(bus, kBusName, 0, nullptr) == -ENXIO;
}

Result<MessagePtr> make_call(sd_bus* bus, const char* method, const std::vector<std::string>& arguments) {
    sd_bus_message* raw = nullptr;
    int r = ::sd_bus_message_new_method_call(bus, &raw, kBusName, kBusPath, kBusInterface, method);
    MessagePtr message(raw);
    for (const std::string& argument : arguments)
        if (r >= 0) r = ::sd_bus_message_append(raw, "s", argument.c_str());
    if (r < 0) return fail_errno(method, -r);
    return message;
}

constexpr const char* kSystemd = "org.freedesktop.systemd1";

// "" if systemd does not answer. On a connection of its own: waiting on the one with our well-known name
// would queue orders.
std::string ask_systemd(sd_bus* bus, const char* object, const char* interface, const char* property) {
    char* raw = nullptr;
    if (::sd_bus_get_property_string(bus, kSystemd, object, interface, property, nullptr, &raw) < 0)
        return "";
    return Text(raw).get();
}

// The type of the job of UNIT, for example "restart"; "" if it has none.
std::string job_type(sd_bus* bus, const char* unit) {
    char* encoded = nullptr;
    if (::sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &encoded) < 0) return "";
    const Text object(encoded);
    sd_bus_message* raw = nullptr;
    if (::sd_bus_get_property(bus, kSystemd, object.get(), "org.freedesktop.systemd1.Unit", "Job", nullptr,
                              &raw, "(uo)") < 0)
        return "";
    const MessagePtr reply(raw);
    unsigned id = 0;
    const char* job = nullptr;
    if (::sd_bus_message_read(raw, "(uo)", &id, &job) <= 0 || id == 0) return "";
    return ask_systemd(bus, job, "org.freedesktop.systemd1.Job", "JobType");
}

// Lower priority than everything else in the loop: signals, timers, udev.
constexpr int kPriority = SD_EVENT_PRIORITY_NORMAL + 10;

// Indexed by syslog level.
constexpr const char* kLevels[] = {"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"};

int get_property(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* property,
                 sd_bus_message* reply, void* journal, sd_bus_error* /*error*/) {
    const std::string name = property;
    const char* value = name == "LogLevel"        ? kLevels[static_cast<Journal*>(journal)->max_level()]
                        : name != "LogTarget"     ? "wq-tuned"
                        : Journal::is_connected() ? "journal"
                                                  : "console";
    return ::sd_bus_message_append(reply, "s", value);
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

const sd_bus_vtable kLogLevel[] = {
    SD_BUS_VTABLE_START(0), SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_property, set_level, 0, 0),
    SD_BUS_PROPERTY("LogTarget", "s", get_property, 0, 0),
    SD_BUS_PROPERTY("SyslogIdentifier", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END};

}  // namespace

// libsystemd itself waits 90 s for a bus that accepts connections but does not reply.
Result<BusPtr> open_system_bus() {
    sd_bus* raw = nullptr;
    int r = ::sd_bus_new(&raw);
    if (r < 0) return fail_errno("system bus", -r);
    BusPtr bus(raw);
    const char* address = ::getenv("DBUS_SYSTEM_BUS_ADDRESS");
    r = ::sd_bus_set_address(raw, address != nullptr ? address : "unix:path=/run/dbus/system_bus_socket");
    if (r >= 0) r = ::sd_bus_set_bus_client(raw, 1);
    // The bus delivers only what root sends (conf/org.wqtuned1.conf). Otherwise sd-bus would ask the bus for
    // the privileges of each caller, and block until the answer.
    if (r >= 0) r = ::sd_bus_set_trusted(raw, 1);
    if (r >= 0) r = ::sd_bus_start(raw);
    if (r < 0) return fail_errno("system bus", -r);
    ::sd_bus_set_method_call_timeout(raw, kBusPatience);
    std::uint64_t heard = monotonic_us();
    while (::sd_bus_is_ready(raw) <= 0) {
        r = ::sd_bus_process(raw, nullptr);
        const std::uint64_t now = monotonic_us();
        if (r > 0) heard = now;
        if (r == 0 && now >= heard + kBusPatience) return fail("the system bus does not answer", ETIMEDOUT);
        if (r == 0) r = ::sd_bus_wait(raw, heard + kBusPatience - now);
        if (r < 0 && r != -EINTR) return fail_errno("system bus", -r);
    }
    return bus;
}

Result<std::string> call_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments) {
    const auto message = make_call(bus, method, arguments);
    if (!message) return tl::unexpected(message.error());
    BusError error;
    sd_bus_message* raw = nullptr;
    const int r = ::sd_bus_call(bus, message->get(), kOrderTimeout, &error.error, &raw);
    const MessagePtr reply(raw);
    const char* said = "";
    if (r >= 0) {
        (void)::sd_bus_message_read(raw, "s", &said);  // most replies are empty
        return std::string(said);
    }
    if (is_absent(error.error))
        return fail("wq-tuned is not running; `systemctl start wq-tuned` starts it", ESRCH);
    if (went_away(bus, error.error)) return fail("wq-tuned ended meanwhile", ESRCH);
    if (::sd_bus_error_has_name(&error.error, SD_BUS_ERROR_ACCESS_DENIED) != 0)
        return fail("only root may give orders: run it as root (sudo)", EACCES);
    return fail(error.error.message != nullptr ? error.error.message : ::strerror(-r), -r);
}

// sd-bus has checked the types of the arguments by the table below.
int BusServer::on_order(sd_bus_message* message, void* self, sd_bus_error* /*error*/) {
    const std::string method = ::sd_bus_message_get_member(message);
    std::vector<std::string> arguments;
    while (::sd_bus_message_at_end(message, 1) == 0) {
        const char* argument = nullptr;
        if (const int r = ::sd_bus_message_read(message, "s", &argument); r < 0) return r;
        arguments.emplace_back(argument);
    }
    const auto done = static_cast<const BusServer*>(self)->order_(method, arguments);
    if (!done)
        return ::sd_bus_reply_method_errorf(message, "org.wqtuned1.Error.Failed", "%s",
                                            done.error().text.c_str());
    if (method == "Revert") return ::sd_bus_reply_method_return(message, "s", done->c_str());
    return ::sd_bus_reply_method_return(message, nullptr);
}

const sd_bus_vtable BusServer::kManager[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Pin", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Unpin", SD_BUS_ARGS("s", target), SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Revert", SD_BUS_ARGS("s", target), SD_BUS_RESULT("s", note), on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Compare", SD_BUS_ARGS("s", target, "s", scope), SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_order, 0),
    SD_BUS_VTABLE_END};

Status BusServer::serve() {
    bus_.reset();
    auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    sd_bus* const raw = bus->get();
    int r = ::sd_bus_add_object_vtable(raw, nullptr, kBusPath, kBusInterface, kManager, this);
    if (r >= 0)
        r = ::sd_bus_add_object_vtable(raw, nullptr, "/org/freedesktop/LogControl1",
                                       "org.freedesktop.LogControl1", kLogLevel, &log_);
    if (r < 0) return fail_errno(kBusInterface, -r);
    (void)::sd_bus_set_close_on_exit(raw, 0);  // it would wait until the bus accepts our unsent messages
    r = ::sd_bus_request_name(raw, kBusName, 0);
    if (r >= 0) r = ::sd_bus_attach_event(raw, event_, kPriority);
    if (r < 0) return fail_errno("the name on the bus", -r);
    bus_ = std::move(*bus);
    return {};
}

void BusServer::connect() {
    if (is_open()) return;
    const auto served = serve();
    if (!served && !warned_)
        log_.write({LOG_WARNING, Event::none, "no D-Bus interface yet: " + served.error().text});
    warned_ = !served;
}

bool BusServer::is_restarting() const {
    char* raw = nullptr;
    if (!is_open() || ::sd_pid_get_unit(0, &raw) < 0) return false;
    const Text unit(raw);
    const auto bus = open_system_bus();
    return bus && job_type(bus->get(), unit.get()) == "restart";
}

const std::string& BusServer::system_state() {
    if (system_state_ == "running" || system_state_ == "degraded") return system_state_;
    system_state_.clear();
    if (!is_open()) return system_state_;
    if (const auto bus = open_system_bus())
        system_state_ = ask_systemd(bus->get(), "/org/freedesktop/systemd1",
                                    "org.freedesktop.systemd1.Manager", "SystemState");
    return system_state_;
}

}  // namespace wq
