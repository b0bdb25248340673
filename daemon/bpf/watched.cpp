// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/watched.h"

#include <algorithm>

namespace wq {

void WatchedSums::add(const WatchedWork& work) {
    const auto key = std::tuple(work.workqueue, work.per_cpu, work.function);
    if (items_.size() < kMost || items_.contains(key))
        items_[key] += work.items;
    else
        lost_ += work.items;
}

Watched WatchedSums::sums() const {
    Watched out{{}, lost_, seconds_};
    for (const auto& [key, items] : items_)
        out.work.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), items});
    std::ranges::stable_sort(out.work, std::ranges::greater{}, &WatchedWork::items);
    return out;
}

}  // namespace wq
