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

// What may speak against a slot on this host now.
struct Conditions {
    std::string observing = {};     // Engine::observing()
    std::string pods_unknown = {};  // Inventory::pods_unknown()
    std::string ledger_error = {};  // why what is learned cannot be kept; "" if it can
    bool paused = false;
    bool in_hours = true;
    std::string system_state = {};  // systemd's; "" where there is none to ask
    std::uint64_t uptime = 0;       // s
    std::chrono::seconds settle{0};
    std::uint64_t delay = 0;  // s that are left of the random delay
    bool memory_is_short = false;
    bool on_battery = false;
    bool hotplug = false;  // CPUs came or went just now
};

// One reason for all targets, what lasts longest first; "" where a slot may begin.
std::string why_no_slot(const Conditions& conditions);

// Whether tasks stall for memory: /proc/pressure/memory, some avg10 above 1% or any full. A kernel that does
// not tell says no.
bool is_memory_short(const Paths& paths);
// Whether a battery is discharged and no mains is online. It may ask the firmware, which takes ms.
bool is_on_battery(const Paths& paths);

// Steal and all time of all CPUs since boot, in ticks.
struct CpuTimes {
    std::uint64_t steal = 0;
    std::uint64_t all = 0;
};
CpuTimes read_cpu_times(const Paths& paths);
// Whether the hypervisor took more than 2% of the time between the two.
bool was_stolen(const CpuTimes& before, const CpuTimes& after);

// The scheduler that runs, as part of what a comparison holds for: "scx_lavd 1.0", "cache-aware", "".
std::string scheduler_in_force(const Paths& paths);

// Why only targets that a rule names are written and compared here: a realtime kernel, isolated CPUs; ""
// where nothing of it is so.
std::string why_named_only(const Paths& paths);

// What is neither written nor compared unless a rule names it.
struct NamedOnly {
    std::string host = {};            // why_named_only()
    std::set<std::string> swap = {};  // swap_devices()

    // Why the target is left alone; "" if it is not.
    [[nodiscard]] std::string why(const Policy& policy, Kind kind, const std::string& name) const;
};

}  // namespace wq
