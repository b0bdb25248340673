// SPDX-License-Identifier: LGPL-2.1-or-later
#include "service/health.h"

#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "machine/bpf_errors.h"
#include "machine/topology.h"

namespace wq {

// The series of a name begins at 0 when it gets one. What its workqueue counted before stays in the sum of
// the others, which must not fall.
void Health::choose_names(const std::vector<KernelWorkqueue>& now) {
    std::set<std::string_view> names;
    for (const KernelWorkqueue& one : now)
        if (one.unbound) names.insert(one.name);
    std::erase_if(rows, [&](const auto& row) { return !names.contains(row.first); });
    for (const std::string_view name : names) {
        if (rows.size() == kMostSeries) break;
        rows.try_emplace(std::string(name));
    }
    unnamed = names.size() - rows.size();
    for (auto& [name, row] : rows) row = {.counts = row.counts};
    others = {.counts = others.counts};
}

const Health::Known* Health::before(const Known& now) const {
    const auto at = std::ranges::lower_bound(known_, now.address, {}, &Known::address);
    return at != known_.end() && at->address == now.address && at->name == now.name ? &*at : nullptr;
}

// If the pools are other ones, a write of a scope or a mask replaced all of them, whoever wrote it: the
// counts began at 0. But a CPU that comes or goes replaces only some; then this is the least that it can be.
std::uint64_t Health::growth(Count count, const Known& now, bool same_cpus) const {
    if (!has_looked) return 0;
    const std::uint64_t all = now.counts[count];
    const Known* last = before(now);
    if (last == nullptr) return all;  // a new workqueue
    const std::uint64_t counted = last->counts[count];
    const bool other_pools = last->pools != now.pools;
    if (other_pools && same_cpus) return all;
    if (all < counted) return other_pools ? 0 : all;
    return all - counted;
}

void Health::add(const std::string& cpus, const std::vector<KernelWorkqueue>& now, std::uint64_t at) {
    const bool same_cpus = std::exchange(cpus_, cpus) == cpus;
    choose_names(now);
    std::vector<Known> known;
    known.reserve(now.size());
    for (const KernelWorkqueue& one : now) {
        Known& next = known.emplace_back(Known{one.address, std::hash<std::string>{}(one.name), one.pools});
        if (!one.unbound) {
            next.counts[started] = one.cpu_intensive;
            const bool named = hogs.contains(one.name) || hogs.size() < kMostSeries;
            hogs[named ? one.name : kOthers] += growth(started, next, same_cpus);
            continue;
        }
        next.counts = {one.started, one.completed, one.repatriated, one.mayday, one.rescued};
        next.all_completed = one.all_completed;
        const Known* last = before(next);
        const bool none_ended = last != nullptr && last->all_completed == next.all_completed;
        if (one.in_flight > 0) next.since = none_ended && last->since > 0 ? last->since : at;
        const auto row = rows.find(one.name);
        Row& sum = row != rows.end() ? row->second : others;
        for (std::uint8_t count = 0; count < kCounts; count++)
            sum.counts[count] += growth(static_cast<Count>(count), next, same_cpus);
        sum.rescuer |= one.mem_reclaim;
        sum.in_flight += one.in_flight;
        if (next.since > 0) sum.stalled = std::max(sum.stalled, at - next.since);
    }
    std::ranges::sort(known, {}, &Known::address);
    known_ = std::move(known);
    has_looked = true;
}

// If an error may pass, the next tick tries again, and the metrics stay as they are until then.
void HealthWatch::look(WorkCounters& counters, bool writes) {
    const std::uint64_t begun = now_();
    const std::uint64_t first = std::max(next_, not_before_);
    if (begun < (!writes ? next_ : health_.has_looked ? not_before_ : first)) return;
    const auto seen = counters.health();
    const std::uint64_t ended = now_();
    // The first look also loads the programs.
    not_before_ = ended + (health_.has_looked ? (ended - begun) * kShare : 0);
    if (!seen && passes(seen.error())) return;
    next_ = std::max(begun + kPeriod, not_before_);
    if (seen) {
        // A suspend takes CPUs offline and online again.
        const auto suspended = time_suspended() / 1'000'000'000;
        health_.add(fmt::format("{} {} {}", cpu_state(paths_), changes_, suspended), *seen, begun);
    } else {
        health_ = {};  // no metrics are better than old ones
    }
    const std::string why = seen ? "" : seen.error().text;
    if (!seen && why != error_)
        log_.write({LOG_NOTICE, Event::none, "no metrics of the health of workqueues: " + why});
    error_ = why;
}

}  // namespace wq
