// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "machine/paths.h"

namespace wq {

// Counters of the machine, not of a workqueue:
//   psi:cpu.some psi:io.some psi:io.full psi:memory.some psi:memory.full
//                                          share of the time that tasks stalled (/proc/pressure)
//   diskstats:DEV.rkB diskstats:DEV.wkB    kB/s read or written (/proc/diskstats); more is better
//   file:/PATH                             the number in a file at the end of the window
// psi and diskstats count from boot on: a window's value comes from one reading at each of its ends.

// The row of counter_table.h for a NAME with a variable part: "diskstats:DEV.rkB" for "diskstats:sda.rkB",
// "file:/PATH" for a path; "" for any other name.
std::string machine_counter_pattern(std::string_view name);

// The counter's current value: us of stall, kB of 1024 bytes, or the file's number. Errors name the file but
// do not quote its content: not readable, not a regular file, no such device, not a single finite number of
// at least 0.
Result<double> read_machine_counter(const Paths& paths, const std::string& name);

// Replaces a 0 in a file, or a throughput of 0. A 0 has no logarithm, and if its pair were dropped, drops
// would depend on the arm. The unit of a file is not known, so there is no smallest step to use instead: if
// only one window has this value, it counts as a third of the other one (log_ratio() in
// evidence/comparison.h).
inline constexpr double kZeroReading = 0x1p-100;

// The value of a window of SECONDS from its two readings: a rate. The difference is at least one unit (1 us
// of stall, 1 kB), because zero has no logarithm. For a file it is AFTER, at least kZeroReading. Error: the
// counter went backwards, or the window has no length.
Result<double> value_of_window(const std::string& name, double before, double after, double seconds);

}  // namespace wq
