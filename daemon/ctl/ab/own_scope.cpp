// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/ab/own_scope.h"

#include <fmt/format.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "service/bus.h"

namespace wq::ab {
namespace {

constexpr std::uint64_t kBusTimeout = 2'000'000;  // us
constexpr unsigned kLooks = 100;
constexpr useconds_t kPause = 20'000;  // us, between two looks

// Returns a negative errno if the message cannot be built, like sd-bus.
int fill(sd_bus_message* message, const std::string& unit, const std::string& command, pid_t pid) {
    const std::string description = "Puts back what wq-tunectl " + command + " has set";
    int r = ::sd_bus_message_append(message, "ss", unit.c_str(), "fail");
    if (r < 0) return r;
    return ::sd_bus_message_append(message, "a(sv)a(sa(sv))", 3,  //
                                   "Description", "s", description.c_str(), "CollectMode", "s",
                                   "inactive-or-failed",  //
                                   "PIDs", "au", 1, static_cast<std::uint32_t>(pid), 0);
}

Status ask_systemd(const std::string& unit, const std::string& command, pid_t pid) {
    const auto bus = open_system_bus();
    if (!bus) return tl::unexpected(bus.error());
    sd_bus_message* made = nullptr;
    int r = ::sd_bus_message_new_method_call(bus->get(), &made, "org.freedesktop.systemd1",
                                             "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                                             "StartTransientUnit");
    const MessagePtr message(made);
    if (r >= 0) r = fill(message.get(), unit, command, pid);
    if (r >= 0) r = ::sd_bus_call(bus->get(), message.get(), kBusTimeout, nullptr, nullptr);
    if (r < 0) return fail_errno(unit, -r);
    return {};
}

}  // namespace

Status into_own_scope(pid_t pid, const std::string& command) {
    if (::sd_booted() <= 0) return {};
    const std::string unit = fmt::format("wq-tunectl-{}-{}.scope", command, pid);
    if (auto asked = ask_systemd(unit, command, pid); !asked) return asked;
    // The reply only means that a job was queued; the process moves when the job runs.
    for (unsigned i = 0; i < kLooks; i++) {
        const auto cgroup = read_file(fmt::format("/proc/{}/cgroup", pid));
        if (cgroup && cgroup->find(unit) != std::string::npos) return {};
        ::usleep(kPause);
    }
    return fail(unit + ": did not start", ETIMEDOUT);
}

}  // namespace wq::ab
