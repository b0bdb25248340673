// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctl/observe/top_rates.h"

namespace wq::ctl {

// What identifies a row of a table during a run.
struct RowKey {
    unsigned id = 0;       // of the workqueue
    std::string function;  // "" in a table of workqueues
    auto operator<=>(const RowKey&) const = default;
};
inline RowKey key_of(const WorkqueueRow& row) {
    return {row.id, ""};
}
inline RowKey key_of(const FunctionRow& row) {
    return {row.id, row.function};
}

// A row in one interval.
struct HistoryPoint {
    double seconds = 0;     // length of the interval
    double per_second = 0;  // items; also 0 if the row did not exist
    // ns: p50 and p99 from queueing to start; for a function, only `high`: the mean from start to end.
    std::optional<double> low, high;
};

// The last intervals of all rows. Rows without items take no memory.
class TopHistory {
  public:
    static constexpr std::size_t kMost = 600;  // intervals

    void add(const TopInterval& interval);
    // A point for each interval, the oldest first.
    [[nodiscard]] std::vector<HistoryPoint> of(const RowKey& key) const;

  private:
    struct Busy {
        std::uint64_t interval = 0;  // its number
        HistoryPoint point;
    };
    void add(const RowKey& key, HistoryPoint point);
    void forget();

    std::uint64_t first_ = 0;     // number of the oldest interval
    std::deque<double> seconds_;  // of each interval
    std::map<RowKey, std::deque<Busy>> rows_;
};

}  // namespace wq::ctl
