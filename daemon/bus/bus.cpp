// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bus/bus.h"

#include <systemd/sd-login.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

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

// A bus that hangs must not cost the daemon its watchdog.
constexpr std::uint64_t kTimeout = 5'000'000;        // us, of questions that a daemon asks
constexpr std::uint64_t kOrderTimeout = 25'000'000;  // us: loading BPF takes its time on a slow machine

bool is_absent(const sd_bus_error& error) {
    return ::sd_bus_error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0 ||
           ::sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) != 0;
}

// A call that waits while the daemon ends gets no reply, as one does that takes too long.
bool went_away(sd_bus* bus, const sd_bus_error& error) {
    return ::sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY) != 0 &&
           ::sd_bus_get_name_creds(bus, kBusName, 0, nullptr) == -ENXIO;
}

Result<MessagePtr> make_call(sd_bus* bus, const char* method, const std::vector<std::string>& arguments,
                             bool interactive) {
    sd_bus_message* raw = nullptr;
    int r = ::sd_bus_message_new_method_call(bus, &raw, kBusName, kBusPath, kBusInterface, method);
    MessagePtr message(raw);
    for (const std::string& argument : arguments)
        if (r >= 0) r = ::sd_bus_message_append(raw, "s", argument.c_str());
    if (r >= 0) r = ::sd_bus_message_set_auto_start(raw, 0);
    if (r >= 0) r = ::sd_bus_message_set_allow_interactive_authorization(raw, static_cast<int>(interactive));
    if (r < 0) return fail_errno(method, -r);
    return message;
}

// The type of the unit's job, "restart" for one; "" where there is none.
std::string job_type(sd_bus* bus, const char* unit) {
    constexpr const char* kManager = "org.freedesktop.systemd1";
    BusError error;
    sd_bus_message* raw = nullptr;
    if (::sd_bus_call_method(bus, kManager, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                             "GetUnit", &error.error, &raw, "s", unit) < 0)
        return "";
    MessagePtr reply(raw);
    const char* unit_path = nullptr;
    if (::sd_bus_message_read(raw, "o", &unit_path) < 0) return "";
    sd_bus_message* raw_job = nullptr;
    if (::sd_bus_get_property(bus, kManager, unit_path, "org.freedesktop.systemd1.Unit", "Job", nullptr,
                              &raw_job, "(uo)") < 0)
        return "";
    MessagePtr job(raw_job);
    unsigned id = 0;
    const char* job_path = nullptr;
    if (::sd_bus_message_read(raw_job, "(uo)", &id, &job_path) < 0 || id == 0) return "";
    char* raw_type = nullptr;
    if (::sd_bus_get_property_string(bus, kManager, job_path, "org.freedesktop.systemd1.Job", "JobType",
                                     nullptr, &raw_type) < 0)
        return "";
    return Text(raw_type).get();
}

}  // namespace

Result<BusPtr> open_system_bus() {
    sd_bus* raw = nullptr;
    int r = ::sd_bus_new(&raw);
    if (r < 0) return fail_errno("system bus", -r);
    BusPtr bus(raw);
    const char* address = ::getenv("DBUS_SYSTEM_BUS_ADDRESS");
    r = ::sd_bus_set_address(raw, address != nullptr ? address : "unix:path=/run/dbus/system_bus_socket");
    if (r >= 0) r = ::sd_bus_set_bus_client(raw, 1);
    // Messages that wait for polkit's answer would hold their senders' descriptors.
    if (r >= 0) r = ::sd_bus_negotiate_fds(raw, 0);
    if (r >= 0) r = ::sd_bus_start(raw);
    if (r < 0) return fail_errno("system bus", -r);
    ::sd_bus_set_method_call_timeout(raw, kTimeout);
    return bus;
}

Result<std::string> call_daemon(sd_bus* bus, const char* method, const std::vector<std::string>& arguments,
                                bool interactive) {
    const auto message = make_call(bus, method, arguments, interactive);
    if (!message) return tl::unexpected(message.error());
    BusError error;
    sd_bus_message* raw = nullptr;
    const std::uint64_t timeout = interactive ? kPatience : kOrderTimeout;
    const int r = ::sd_bus_call(bus, message->get(), timeout, &error.error, &raw);
    MessagePtr reply(raw);
    if (r < 0 && is_absent(error.error)) return fail("no daemon runs", ESRCH);
    if (r < 0 && went_away(bus, error.error)) return fail("the daemon ended meanwhile", ESRCH);
    if (r < 0) return fail(error.error.message != nullptr ? error.error.message : ::strerror(-r), -r);
    const char* text = "";
    if (::sd_bus_message_has_signature(raw, "s") > 0) ::sd_bus_message_read(raw, "s", &text);
    return std::string(text);
}

bool unit_is_restarting(sd_bus* bus) {
    char* raw = nullptr;
    if (bus == nullptr || ::sd_pid_get_unit(0, &raw) < 0) return false;
    const Text unit(raw);
    return job_type(bus, unit.get()) == "restart";
}

}  // namespace wq
