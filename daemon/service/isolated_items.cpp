// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/isolated_items.h"

#include <syslog.h>
#include <set>
#include <vector>

#include "machine/bpf_errors.h"
#include "machine/isolation.h"

namespace wq {

void IsolatedItems::add(const CpuSet& cpus, const std::vector<StartedWork>& now) {
    const bool same = cpus_ == cpus;
    std::map<Key, Known> known;
    for (const StartedWork& one : now) {
        const Key key{one.address, one.workqueue};
        const auto at = known_.find(key);
        Known sum = at != known_.end() ? at->second : Known{};
        // A new workqueue starts at zero. If the count fell, another workqueue has reused the address and the
        // name.
        if (same) sum.items += one.items - (one.items >= sum.counted ? sum.counted : 0);
        sum.counted = one.items;
        known[key] = sum;
    }
    keep_names(known);
    known_ = std::move(known);
    cpus_ = cpus;
}

// A counter of a metric must not fall. So the items of a workqueue that is gone stay in the sum of its name,
// as long as another workqueue has that name.
void IsolatedItems::keep_names(const std::map<Key, Known>& now) {
    std::set<std::string> names;
    for (const auto& [key, sum] : now) names.insert(key.second);
    for (const auto& [key, sum] : known_)
        if (!now.contains(key)) gone_[key.second] += sum.items;
    std::erase_if(gone_, [&](const auto& one) { return !names.contains(one.first); });
}

std::map<std::string, std::uint64_t> IsolatedItems::items() const {
    std::map<std::string, std::uint64_t> out = gone_;
    for (const auto& [key, sum] : known_) out[key.second] += sum.items;
    return out;
}

namespace {

constexpr unsigned kTicks = 4;  // from one sample to the next

}  // namespace

void IsolatedWatch::tick(WorkCounters& counters) {
    if (wait_ > 0) {
        wait_--;
        return;
    }
    wait_ = kTicks - 1;
    const CpuSet cpus = read_isolation(paths_).cpus();
    const auto started = cpus.empty() ? std::vector<StartedWork>{} : counters.started_on(cpus);
    if (started) items_.add(cpus, *started);
    if (!started && passes(started.error())) return;
    const std::string why = started ? "" : started.error().text;
    if (!why.empty() && why != error_)
        log_.write({LOG_NOTICE, Event::none, "no metric of work on isolated CPUs: " + why});
    error_ = why;
}

}  // namespace wq
