// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <span>
#include <string_view>

#include "bpf/work_counters.h"

namespace wq {

// All that is known of a counter by its name. The policy, the judge, the experiment and the messages read it
// here.
struct CounterKind {
    std::string_view name;  // or a pattern: "diskstats:DEV.rkB", "file:/PATH"
    std::string_view unit;
    bool higher_is_better = false;  // where the policy does not say
    double least_alarming = 0;      // below this in both windows, three times as much is chance and no harm
    // What a window of SECONDS comes to, of what is counted of a workqueue's work (NaN: not known); nullptr:
    // see machine_counter.h.
    double (*of_work)(const WorkCount&, double seconds) = nullptr;
    // Nothing reads it: the experiment computes it of the other targets in the slot. It can be a guard, and
    // not judged.
    bool guard_only = false;
};

// The name of the one that is `guard_only`: the mean of what the other targets of the slot came to.
inline constexpr const char* kOthers = "others";

// In the order in which messages list them.
std::span<const CounterKind> counter_kinds();

// The row of the counter that NAME names, or nullptr. The device or file that it names need not exist.
const CounterKind* find_counter(std::string_view name);

// Whether more of NAME is better, where the policy does not say.
bool counter_higher_is_better(std::string_view name);

// Whether NAME is counted of a workqueue's work, and not of the machine.
bool is_work_counter(std::string_view name);

}  // namespace wq
