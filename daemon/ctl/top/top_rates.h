// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bpf/work_monitor.h"

namespace wq::ctl {

// A workqueue over one interval.
struct WorkqueueRow {
    unsigned id = 0;         // stands for it while this runs; names are not unique
    KernelWorkqueue now;     // the kernel's own totals, at the end of the interval
    bool reset = false;      // its pools were set anew in this interval: what it counted says nothing
    bool was_reset = false;  // in this or in an earlier one: the totals are younger than those of others

    std::uint64_t items = 0;  // started, as the kernel counts them; those timed where it was reset
    double per_second = 0;
    std::optional<double> cpu;            // seconds of CPU time per second; none where it was reset, or bh
    std::uint64_t timed = 0;              // items whose wait is in p50 to p99
    std::optional<double> p50, p90, p99;  // ns from queueing to start, to an eighth
    std::optional<double> lock;  // mean ns of those queued, from __queue_work() to holding pool->lock
};

// What one function did on one workqueue in the interval: the items that ended in it.
struct FunctionRow {
    unsigned id = 0;  // the workqueue's
    std::string workqueue;
    std::string function;
    std::uint64_t items = 0;
    double per_second = 0;
    double busy = 0;  // workers that it kept: seconds from start to end, per second
    double mean = 0;  // ns from start to end
};

struct TopInterval {
    double seconds = 0;
    std::vector<WorkqueueRow> workqueues;
    std::vector<FunctionRow> functions;  // those with items
    std::uint64_t lost = 0;              // items that were not timed, see WorkSample
};

// Makes intervals of one sample after the other.
class TopRates {
  public:
    // From the sample before to this one; of the first, nothing.
    std::optional<TopInterval> add(WorkSample sample);

  private:
    struct Known {
        unsigned id = 0;
        bool was_reset = false;
    };
    using Key = std::pair<std::uint64_t, std::string>;  // an address may come to another workqueue

    void know(const std::vector<KernelWorkqueue>& workqueues);
    void fill(TopInterval& out, const WorkSample& now);

    std::optional<WorkSample> before_;
    std::map<Key, Known> known_;
    unsigned last_id_ = 0;
};

}  // namespace wq::ctl
