// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kernel/paths.h"

namespace wq {

// Counters of the machine, not of a workqueue:
//   psi:cpu.some psi:io.some psi:io.full psi:memory.some psi:memory.full
//                                          share of the time that tasks stalled (/proc/pressure)
//   diskstats:DEV.rkB diskstats:DEV.wkB    kB/s read or written (/proc/diskstats); more is better
//   file:/PATH                             the number in a file, as it is when the window ends
// They count for as long as the machine runs: a window's value is made of a reading at each of its ends.

// The row of counter_table.h for a NAME with a part of its own: "diskstats:DEV.rkB" for "diskstats:sda.rkB",
// "file:/PATH" for a path; "" for any other.
std::string machine_counter_pattern(std::string_view name);

// The counter as it stands now: us of stall, kB of 1024 bytes, or the file's number. Errors name the file and
// repeat nothing of what is in it: unreadable, not a regular file, no such device, not one number that is
// finite and not below 0.
Result<double> read_machine_counter(const Paths& paths, const std::string& name);

// What a window that lasted SECONDS comes to, from its two readings: a rate, at least one unit of the counter
// (1 us of stall, 1 kB) per window, since zero has no logarithm. Of a file it is AFTER as it is: that number
// has no unit known here, so its 0 stays 0, and the judge drops such a pair with its reason. Error: the
// counter went backwards, or the window had no length.
Result<double> value_of_window(const std::string& name, double before, double after, double seconds);

}  // namespace wq
