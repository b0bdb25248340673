// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bpf/work_monitor.h"

namespace wq::ctl {

// One workqueue in one interval.
struct WorkqueueRow {
    unsigned id = 0;         // identifies it during this run; names are not unique
    KernelWorkqueue now;     // the kernel's totals at the end of the interval
    KernelWorkqueue before;  // those at its start; 0 for a new workqueue
    bool reset = false;      // its pools were replaced in this interval, so its counts are not usable

    std::uint64_t items = 0;  // started items, counted by the kernel; only timed items if it was reset
    double per_second = 0;
    std::optional<double> cpu;            // seconds of CPU time per second; empty if it was reset, or for bh
    std::uint64_t timed = 0;              // items whose wait is included in p50 to p99
    std::optional<double> p50, p90, p99;  // ns from queueing to start, with a precision of 1/8
    std::optional<double> wait;           // mean ns from queueing to start; empty if it was not timed
    std::optional<double> q50, q90, q95, q99;  // ns that producers spent in queue_work(), to 1/8; if seen
    std::optional<double> lock;                // mean ns from __queue_work() to holding pool->lock

    // Items that started and did not end, as far as the kernel counts them.
    [[nodiscard]] std::uint64_t in_flight() const {
        return now.started - std::min(now.started, now.completed);
    }
};

// One function on one workqueue in the interval: the items that ended in it.
struct FunctionRow {
    unsigned id = 0;  // id of the workqueue
    std::string workqueue;
    std::string function;
    std::uint64_t items = 0;
    double per_second = 0;
    double busy = 0;  // workers that it kept busy: seconds from start to end, per second
    double mean = 0;  // ns from start to end
};

struct TopInterval {
    double seconds = 0;
    std::vector<WorkqueueRow> workqueues;
    std::vector<FunctionRow> functions;  // only functions with items
    std::uint64_t lost = 0;              // items that were not timed, see WorkSample
};

// Computes intervals from consecutive samples.
class TopRates {
  public:
    // The interval from the previous sample to this one; empty for the first sample.
    std::optional<TopInterval> add(WorkSample sample);

  private:
    struct Known {
        unsigned id = 0;
        KernelWorkqueue last;
    };
    using Key = std::pair<std::uint64_t, std::string>;  // the address may be reused for another workqueue

    WorkSample before_;
    bool begun_ = false;
    std::map<Key, Known> known_;
    unsigned last_id_ = 0;
};

// VALUE with at most four digits: "0.3", "9999", "12.3k".
std::string count_text(double value);
// Formats nanoseconds: "840ns", "8.4us", "84ms", "840s".
std::string time_text(double ns);

}  // namespace wq::ctl
