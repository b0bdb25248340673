// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "kernel/paths.h"
#include "model/policy.h"
#include "model/workqueue.h"

namespace wq {

// Conditions on this host that may prevent a slot now.
struct Conditions {
    std::string observing = {};     // Engine::observing()
    std::string pods_unknown = {};  // Inventory::pods_unknown()
    std::string ledger_error = {};  // why the ledger cannot be saved; "" if it can
    bool paused = false;
    bool in_hours = true;
    std::string system_state = {};  // systemd's; "" if systemd cannot be asked
    std::uint64_t uptime = 0;       // s
    std::chrono::seconds settle{0};
    std::uint64_t delay = 0;  // s, the rest of the random delay
    bool memory_is_short = false;
    bool on_battery = false;
    bool hotplug = false;  // CPUs came or went just now
};

// Returns one reason, which is the same for all targets; "" if a slot may begin. If there are several
// reasons, the one that lasts longest.
std::string why_no_slot(const Conditions& conditions);

// Whether tasks stall for memory: in /proc/pressure/memory, avg10 of `some` is above 1% or that of `full`
// above 0. False if the kernel does not have this file.
bool is_memory_short(const Paths& paths);
// Whether a battery is discharging and no mains supply is online. The kernel may ask the firmware, which
// takes milliseconds.
bool is_on_battery(const Paths& paths);

// Steal time and total time of all CPUs since boot, in ticks.
struct CpuTimes {
    std::uint64_t steal = 0;
    std::uint64_t all = 0;
};
CpuTimes read_cpu_times(const Paths& paths);
// Whether the hypervisor took more than 2% of the time between the two.
bool was_stolen(const CpuTimes& before, const CpuTimes& after);

// The scheduler in force, which is part of a comparison's key: "scx_lavd 1.0", "cache-aware", "".
std::string scheduler_in_force(const Paths& paths);

// Why only targets that a rule names are written and compared here: a realtime kernel, isolated CPUs; "" if
// neither is the case.
std::string why_named_only(const Paths& paths);

// Targets that are neither written nor compared unless a rule names them.
struct NamedOnly {
    std::string host = {};            // why_named_only()
    std::set<std::string> swap = {};  // swap_devices()

    // Why the target is left alone; "" if it is not.
    [[nodiscard]] std::string why(const Policy& policy, Kind kind, const std::string& name) const;
};

}  // namespace wq
