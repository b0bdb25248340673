// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <span>
#include <string_view>

#include "bpf/work_counters.h"

namespace wq {

// The properties of a counter. The policy, the judge, the experiments and the messages use this table.
struct CounterKind {
    std::string_view name;  // or a pattern: "diskstats:DEV.rkB", "file:/PATH"
    std::string_view unit;
    bool higher_is_better = false;  // default if the policy does not say
    double least_alarming = 0;      // if both windows are below this, a threefold cost is noise, not harm
    // The value of a window of SECONDS, from the counts of a workqueue's work (NaN: not known). nullptr: not
    // from work; see machine_counter.h.
    double (*of_work)(const WorkCount&, double seconds) = nullptr;
    // Not read anywhere: the experiment computes it from the other targets of the slot. It can be a guard,
    // but it cannot be judged.
    bool guard_only = false;
};

// The name of the `guard_only` counter: the mean change of cost of the other targets of the slot.
inline constexpr const char* kOthers = "others";

// All counters, in the order in which messages list them.
std::span<const CounterKind> counter_kinds();

// The row for the counter NAME, or nullptr. The device or file in NAME need not exist.
const CounterKind* find_counter(std::string_view name);

// Whether more of NAME is better if the policy does not say.
bool counter_higher_is_better(std::string_view name);

// Whether NAME counts the work of a workqueue, not of the machine.
bool is_work_counter(std::string_view name);

// Returns N for WorkCounters::sample(), which times every N-th item of a target: ITEMS / kTimed, 1 to 65535.
// ITEMS is the expected number per window; any value is valid. About kTimed items are then timed: enough for
// a mean to 2% if the standard deviation is as large as the mean, at a negligible cost. Both windows of a
// pair need the same N, so ITEMS must come from before the pair: from the traffic or from the previous pair.
inline constexpr unsigned kTimed = 2000;
unsigned sampled_every(double items);

}  // namespace wq
