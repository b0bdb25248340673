// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_sums.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

namespace wq {
namespace {

double mean(std::uint64_t sum, std::uint64_t items) {
    return items == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(items);
}

}  // namespace

WorkCount count_of(std::uint64_t queued, const wq_sums& timed, const Histogram& waited) {
    const std::uint64_t open = std::uint64_t{timed.pending} + timed.running;
    const std::uint64_t seen = timed.ended + open;
    const double each = mean(queued, timed.timed);  // number of items that a timed one represents
    const auto of_all = [&](std::uint64_t items) {
        return std::min(queued, static_cast<std::uint64_t>(std::llround(static_cast<double>(items) * each)));
    };
    WorkCount count;
    count.timed = timed.timed;
    count.unfinished = of_all(open);
    count.lost = std::min(queued - count.unfinished, of_all(timed.timed > seen ? timed.timed - seen : 0));
    count.items = queued - count.unfinished - count.lost;
    count.stuck = of_all(timed.stuck);
    count.latency = mean(timed.latency, seen);
    count.exec = mean(timed.exec, std::uint64_t{timed.ended} + timed.running);
    count.lock = mean(timed.lock, timed.timed);
    count.tail = waited.percentile(0.99);
    return count;
}

void set_enqueued(WorkCount& count, const wq_enqueued& times) {
    const auto items = std::accumulate(std::begin(times.items), std::end(times.items), std::uint64_t{0});
    if (items == 0) return;
    count.enqueue = mean(times.ns, items);
    count.enqueued.assign(std::begin(times.items), std::end(times.items));
}

void add_statistics(WorkCount& count, const KernelLook& before, const KernelLook& after, unsigned t) {
    count.throughput = count.cpu = WorkCount::kUnknown;
    if (t >= before.of.size() || t >= after.of.size()) return;
    const auto &from = before.of[t], &to = after.of[t];
    count.pools = to.worker_pools;
    count.workers = to.workers;
    if (from.pools == 0 || from.pools != to.pools || after.ns <= before.ns) return;
    if (to.completed < from.completed || to.cpu_time_us < from.cpu_time_us) return;
    const auto completed = static_cast<double>(to.completed - from.completed);
    const auto ns = static_cast<double>(after.ns - before.ns);
    count.throughput = completed / ns * 1e9;
    // The length of a scheduler tick in ns, measured over the window.
    const double tick = ns / static_cast<double>(std::max(after.ticks - before.ticks, std::uint64_t{1}));
    const double cpu = static_cast<double>(to.cpu_time_us - from.cpu_time_us) * 1e3;
    if (completed > 0 && cpu / tick >= WorkCount::kLeastTicks - 0.5) count.cpu = cpu / completed;
}

void Watched::add(const WatchedWork& one) {
    const auto same = std::ranges::find_if(work, [&](const WatchedWork& other) {
        return std::tie(one.workqueue, one.per_cpu, one.function) ==
               std::tie(other.workqueue, other.per_cpu, other.function);
    });
    if (same != work.end())
        same->items += one.items;
    else if (work.size() < kMost)
        work.push_back(one);
    else
        lost += one.items;
}

}  // namespace wq
