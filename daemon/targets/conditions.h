// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "machine/kernel_info.h"
#include "machine/paths.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace wq {

// Conditions on this host that may prevent a slot now.
struct Conditions {
    std::string observing = {};     // Targets::observing()
    std::string pods_unknown = {};  // Snapshot::pods_unknown
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

// One reason for all targets, the one that lasts longest; "" if a slot may begin.
std::string why_no_slot(const Conditions& conditions);

inline constexpr const char* kPaused = "paused by `wq-tunectl pause`";
// Whether comparisons are paused. As for the daemon, a mark that cannot be read does not pause.
bool is_paused(const Paths& paths);

// Why nothing is written on a host with KERNEL under POLICY: the kernel has no scopes, WHY (a kill switch, a
// broken file), mode observe; "" if the policy is followed.
std::string why_observing(const KernelInfo& kernel, const Policy& policy, const std::string& why);

// The conditions of the host of PATHS as far as they can be read without a daemon. WHY: as above.
Conditions read_conditions(const Paths& paths, const KernelInfo& kernel, const Policy& policy,
                           const std::string& why);

NamedOnly read_named_only(const Paths& paths);

// Whether tasks stall for memory: in /proc/pressure/memory, avg10 of `some` is above 1% or that of `full`
// above 0. False if the kernel does not have this file.
bool is_memory_short(const Paths& paths);
// Whether a battery is discharging and no mains supply is online. Firmware may take milliseconds to answer.
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

}  // namespace wq
