// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_history.h"

namespace wq::ctl {

void TopHistory::add(const RowKey& key, HistoryPoint point) {
    rows_[key].push_back({first_ + seconds_.size() - 1, point});
}

void TopHistory::add(const TopInterval& interval) {
    seconds_.push_back(interval.seconds);
    for (const auto& row : interval.workqueues)
        if (row.items > 0 || row.timed > 0)
            add(key_of(row), {interval.seconds, row.per_second, row.p50, row.p99});
    for (const auto& row : interval.functions)
        add(key_of(row), {interval.seconds, row.per_second, std::nullopt, row.mean});
    forget();
}

void TopHistory::forget() {
    if (seconds_.size() <= kMost) return;
    seconds_.pop_front();
    first_++;
    for (auto& [key, all] : rows_)
        while (!all.empty() && all.front().interval < first_) all.pop_front();
    std::erase_if(rows_, [](const auto& row) { return row.second.empty(); });
}

std::vector<HistoryPoint> TopHistory::of(const RowKey& key) const {
    std::vector<HistoryPoint> out;
    out.reserve(seconds_.size());
    for (const double seconds : seconds_) out.push_back({seconds, 0, std::nullopt, std::nullopt});
    const auto at = rows_.find(key);
    if (at == rows_.end()) return out;
    for (const Busy& one : at->second) out[one.interval - first_] = one.point;
    return out;
}

}  // namespace wq::ctl
