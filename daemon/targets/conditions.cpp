// SPDX-License-Identifier: LGPL-2.1-or-later
#include "targets/conditions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "machine/isolation.h"

namespace wq {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostSteal = 50;       // one tick in 50 at most
constexpr std::uint64_t kMostStarting = 1200;  // s after boot

// The value of avg10 in the line of KIND: "some avg10=0.00 avg60=...".
double average(const std::string& pressure, std::string kind) {
    const auto at = pressure.find(kind += " avg10=");
    return at == std::string::npos ? 0 : std::strtod(pressure.c_str() + at + kind.size(), nullptr);
}

}  // namespace

std::string why_no_slot(const Conditions& c) {
    if (!c.observing.empty()) return "observing: " + c.observing;
    if (c.paused) return kPaused;
    if (!c.pods_unknown.empty()) return "pods unknown: " + c.pods_unknown;
    if (!c.ledger_error.empty()) return "the ledger cannot be written: " + c.ledger_error;
    if (const auto settle = static_cast<std::uint64_t>(c.settle.count()); c.uptime < settle)
        return fmt::format("settling after boot ({} left)", rough_time(settle - c.uptime));
    // A boot job that never ends holds nothing up for ever.
    const bool starts = c.system_state == "starting" && c.uptime >= kMostStarting;
    if (!starts && !c.system_state.empty() && c.system_state != "running" && c.system_state != "degraded")
        return fmt::format("systemd is '{}'", c.system_state);
    if (!c.in_hours) return "outside judge.hours";
    if (c.delay > 0) return fmt::format("random delay: {} left", rough_time(c.delay));
    if (c.on_battery) return "on battery";
    if (c.memory_is_short) return "memory is short";
    if (c.hotplug) return "CPUs came or went just now";
    return "";
}

std::string why_observing(const KernelInfo& kernel, const Policy& policy, const std::string& why) {
    const std::string lacks = lacks_scopes(kernel);
    if (!lacks.empty()) return why.empty() ? lacks : fmt::format("{}; {}", why, lacks);
    if (!why.empty()) return why;
    return policy.mode == Mode::observe ? "mode is observe" : "";
}

bool is_paused(const Paths& paths) {
    const auto paused = read_if_there(paths.paused());
    return paused && *paused;
}

Conditions read_conditions(const Paths& paths, const KernelInfo& kernel, const Policy& policy,
                           const std::string& why) {
    Conditions out;
    out.observing = why_observing(kernel, policy, why);
    out.paused = is_paused(paths);
    out.in_hours = policy.judge.hours.contains(minute_of_day());
    const std::string uptime = read_first_line(paths.proc() + "/uptime");
    out.uptime = uptime.empty() ? UINT64_MAX : std::strtoull(uptime.c_str(), nullptr, 10);
    out.settle = policy.judge.settle;
    out.memory_is_short = is_memory_short(paths);
    out.on_battery = is_on_battery(paths);
    return out;
}

NamedOnly read_named_only(const Paths& paths) {
    const Isolation isolation = read_isolation(paths);
    return {read_first_line(paths.root + "/sys/kernel/realtime") == "1" ? "a realtime kernel"
            : !isolation.isolcpus.empty()                               ? "isolcpus= is set"
            : !isolation.nohz_full.empty()                              ? "nohz_full= is set"
                                                                        : "",
            swap_devices(paths)};
}

bool is_memory_short(const Paths& paths) {
    const auto text = read_file(paths.pressure("memory"));
    return text && (average(*text, "some") > 1 || average(*text, "full") > 0);
}

bool is_on_battery(const Paths& paths) {
    std::error_code error;
    bool discharging = false;
    for (auto at = fs::directory_iterator(paths.root + "/sys/class/power_supply", error);
         !error && at != fs::directory_iterator(); at.increment(error)) {
        const std::string folder = at->path();
        const std::string type = read_first_line(folder + "/type");
        if (type == "Battery")
            discharging = discharging || (read_first_line(folder + "/status") == "Discharging" &&
                                          read_first_line(folder + "/scope") != "Device");
        else if (read_first_line(folder + "/online") == "1")
            return false;
    }
    return discharging;
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice": guests' time is in user and nice.
CpuTimes read_cpu_times(const Paths& paths) {
    CpuTimes out;
    std::istringstream words(read_first_line(paths.proc() + "/stat"));
    std::string cpu;
    words >> cpu;
    for (unsigned i = 0; i < 8 && words >> out.steal; i++) out.all += out.steal;
    return out;
}

bool was_stolen(const CpuTimes& before, const CpuTimes& after) {
    if (after.steal <= before.steal || after.all <= before.all) return false;
    return (after.steal - before.steal) * kMostSteal > after.all - before.all;
}

std::string scheduler_in_force(const Paths& paths) {
    std::string out;
    if (read_first_line(paths.sched_ext() + "/state") == "enabled")
        out = read_first_line(paths.sched_ext() + "/root/ops");
    // Exists only if debugfs is mounted.
    const std::string balancing =
        read_first_line(paths.root + "/sys/kernel/debug/sched/llc_balancing/enabled");
    if (!balancing.empty() && balancing != "0" && balancing != "N")
        out += out.empty() ? "cache-aware" : ", cache-aware";
    return out;
}

}  // namespace wq
