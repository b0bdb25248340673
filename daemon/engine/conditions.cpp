// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/conditions.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "kernel/read_isolation.h"
#include "kernel/read_swap.h"

namespace wq {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostSteal = 50;  // one tick in 50 at most

// The value of avg10 in the line of KIND: "some avg10=0.00 avg60=...".
double average(const std::string& pressure, const std::string& kind) {
    std::istringstream lines(pressure);
    const std::string start = kind + " avg10=";
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(start)) return std::strtod(line.c_str() + start.size(), nullptr);
    return 0;
}

// Whether a rule names the target. The rule "*" matches every name and does not count.
bool is_named(const Policy& policy, Kind kind, const std::string& name) {
    if (kind == Kind::default_scope) return !policy.default_scope.origin.file.empty();
    const WorkqueueRule* rule = policy.rule_for(name);
    return rule != nullptr && rule->names(name);
}

}  // namespace

std::string why_no_slot(const Conditions& c) {
    if (!c.observing.empty()) return "observing: " + c.observing;
    if (c.paused) return "paused by `wq-tunectl pause`";
    if (!c.pods_unknown.empty()) return "pods unknown: " + c.pods_unknown;
    if (!c.ledger_error.empty()) return "the ledger cannot be written: " + c.ledger_error;
    if (const auto settle = static_cast<std::uint64_t>(c.settle.count()); c.uptime < settle)
        return fmt::format("settling after boot ({} left)", rough_time(settle - c.uptime));
    if (!c.system_state.empty() && c.system_state != "running" && c.system_state != "degraded")
        return fmt::format("systemd is '{}'", c.system_state);
    if (!c.in_hours) return "outside judge.hours";
    if (c.delay > 0) return fmt::format("random delay: {} left", rough_time(c.delay));
    if (c.on_battery) return "on battery";
    if (c.memory_is_short) return "memory is short";
    if (c.hotplug) return "CPUs came or went just now";
    return "";
}

bool is_memory_short(const Paths& paths) {
    const auto text = read_file(paths.pressure("memory"));
    return text && (average(*text, "some") > 1 || average(*text, "full") > 0);
}

bool is_on_battery(const Paths& paths) {
    std::error_code error;
    bool discharging = false;
    for (auto at = fs::directory_iterator(paths.power_supplies(), error);
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
    std::string word;
    words >> word;
    for (unsigned i = 0; i < 8 && words >> word; i++) {
        const std::uint64_t ticks = std::strtoull(word.c_str(), nullptr, 10);
        out.all += ticks;
        if (i == 7) out.steal = ticks;
    }
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
    const std::string balancing = read_first_line(paths.llc_balancing());
    if (!balancing.empty() && balancing != "0" && balancing != "N")
        out += out.empty() ? "cache-aware" : ", cache-aware";
    return out;
}

std::string why_named_only(const Paths& paths) {
    if (read_first_line(paths.realtime()) == "1") return "a realtime kernel";
    const Isolation isolation = read_isolation(paths);
    if (!isolation.isolcpus.empty()) return "isolcpus= is set";
    if (!isolation.nohz_full.empty()) return "nohz_full= is set";
    return "";
}

std::string NamedOnly::why(const Policy& policy, Kind kind, const std::string& name) const {
    std::string out;
    if (!host.empty())
        out = host + ": only targets that a rule names are written or compared";
    else if (serves_swap(name, swap))
        out = "it serves swap: written or compared only if a rule names it";
    return out.empty() || is_named(policy, kind, name) ? "" : out;
}

}  // namespace wq
