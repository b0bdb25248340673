// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/isolated_items.h"

namespace wq {

void IsolatedItems::add(const CpuSet& cpus, const std::vector<StartedWork>& now) {
    const bool same = cpus_ == cpus;
    std::map<Key, Known> known;
    for (const StartedWork& one : now) {
        const Key key{one.address, one.workqueue};
        const auto at = known_.find(key);
        Known sum = at != known_.end() ? at->second : Known{};
        // One that is new began at zero, and so did one at the place of another.
        if (same) sum.items += one.items - (one.items >= sum.counted ? sum.counted : 0);
        sum.counted = one.items;
        known[key] = sum;
    }
    known_ = std::move(known);
    cpus_ = cpus;
}

std::map<std::string, std::uint64_t> IsolatedItems::items() const {
    std::map<std::string, std::uint64_t> out;
    for (const auto& [key, sum] : known_) out[key.second] += sum.items;
    return out;
}

}  // namespace wq
