// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/log_control.h"

#include <cstring>

namespace wq {
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
