// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bpf/work_counters.h"
#include "machine/paths.h"

namespace wq {

// The properties of a counter. The policy, the judge, the experiments and the messages use this table.
struct CounterKind {
    std::string_view name;  // or a pattern: "diskstats:DEV.rkB", "file:/PATH"
    std::string_view unit;
    bool higher_is_better = false;  // default if the policy does not say
    double least_alarming = 0;      // if both windows are below this, a threefold cost is noise, not harm
    // The value of a window of SECONDS, from the counts of a workqueue's work (NaN: not known). nullptr: not
    // from work, see read_machine_counter().
    double (*of_work)(const WorkCount&, double seconds) = nullptr;
    bool Wanted::*needs = nullptr;  // what WorkCounters::attach() must be asked for
    // It can be a guard, but it cannot be judged: fewer of it is no gain by itself.
    bool guard_only = false;
};

// Computed by the experiment: the mean change of cost of the other targets of the slot.
inline constexpr const char* kOthers = "others";

// All counters, in the order in which messages list them.
std::span<const CounterKind> counter_kinds();

// The row for the counter NAME, or nullptr. The device or file in NAME need not exist.
const CounterKind* find_counter(std::string_view name);

// Whether more of NAME is better if the policy does not say.
bool counter_higher_is_better(std::string_view name);

// Whether NAME counts the work of a workqueue, not of the machine.
bool is_work_counter(std::string_view name);

// N for WorkCounters::sample(), which times one of N items: ITEMS, expected per window, / kTimed, 1 to
// 65535. kTimed give a mean to 2% if the deviation is as large as it. Both windows of a pair need the same N,
// so ITEMS must come from before the pair.
inline constexpr unsigned kTimed = 2000;
unsigned sampled_every(double items);

// Counters of the machine, not of a workqueue:
//   psi:cpu.some psi:io.some psi:io.full psi:memory.some psi:memory.full
//                                          share of the time that tasks stalled (/proc/pressure)
//   diskstats:DEV.rkB diskstats:DEV.wkB    kB/s read or written (/proc/diskstats); more is better
//   file:/PATH                             the number in a file at the end of the window
// psi and diskstats count from boot on: a window's value comes from one reading at each of its ends.

// The counter's current value: us of stall, kB of 1024 bytes, or the file's number. Errors name the file but
// do not quote its content.
Result<double> read_machine_counter(const Paths& paths, const std::string& name);

// Replaces a 0 in a file, or a throughput of 0. A 0 has no logarithm, and if its pair were dropped, drops
// would depend on the arm. The unit of a file is not known, so there is no smallest step to use instead: if
// only one window has this value, it counts as a third of the other one (log_ratio() in
// evidence/comparison.h).
inline constexpr double kZeroReading = 0x1p-100;

// The value of a window of SECONDS: a rate, of at least one unit (1 us of stall, 1 kB), because zero has no
// logarithm. For a file AFTER, at least kZeroReading. Error: it went backwards, or the window has no length.
Result<double> value_of_window(const std::string& name, double before, double after, double seconds);

}  // namespace wq
