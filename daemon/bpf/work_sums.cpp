// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bpf/work_sums.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace wq {
namespace {

double mean(std::uint64_t sum, std::uint64_t items) {
    return items == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(items);
}

// The lowest value of BUCKET; the inverse of wq_bucket_by().
double lowest(unsigned bucket, unsigned bits) {
    const unsigned per_octave = 1U << bits;
    if (bucket < per_octave) return bucket;
    const int octave = static_cast<int>(bucket >> bits) - 1;
    return std::ldexp(per_octave + (bucket & (per_octave - 1)), octave);
}

}  // namespace

Histogram::Histogram(unsigned bits) : bits_(bits), counts_((40 - bits + 1) << bits) {
    static_assert(WQ_BUCKETS == (40 - 7 + 1) << 7 && kTimeBits == WQ_TIME_BITS);
}

std::uint64_t Histogram::items() const {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double Histogram::percentile(double share) const {
    const auto all = static_cast<double>(items());
    if (all == 0) return 0;
    const double rank = std::clamp(std::ceil(share * all), 1.0, all);
    double below = 0;
    const auto buckets = static_cast<unsigned>(counts_.size());
    const auto from = [this](unsigned bucket) { return lowest(bucket, bits_); };
    for (unsigned bucket = 0; bucket < buckets; bucket++) {
        const auto here = static_cast<double>(counts_[bucket]);
        // Assumes that the items of a bucket are evenly distributed in it.
        if (here > 0 && below + here >= rank)
            return from(bucket) + (from(bucket + 1) - from(bucket)) * (rank - below - 0.5) / here;
        below += here;
    }
    return from(buckets);
}

double Histogram::mean() const {
    const auto all = static_cast<double>(items());
    if (all == 0) return 0;
    double sum = 0;
    for (unsigned bucket = 0; bucket < counts_.size(); bucket++) {
        // A bucket that is one ns wide holds its lowest value only.
        const double from = lowest(bucket, bits_), width = lowest(bucket + 1, bits_) - from;
        sum += static_cast<double>(counts_[bucket]) * (from + (width > 1 ? width / 2 : 0));
    }
    return sum / all;
}

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
    if (to.started < from.started || to.cpu_time_us < from.cpu_time_us) return;
    // The kernel counts what starts under pool->lock. What completes it counts without a lock
    // (process_one_work()), and loses the more, the more CPUs share a pool_workqueue.
    const auto started = static_cast<double>(to.started - from.started);
    const auto ns = static_cast<double>(after.ns - before.ns);
    count.throughput = started / ns * 1e9;
    // The length of a scheduler tick in ns, measured over the window.
    const double tick = ns / static_cast<double>(std::max(after.ticks - before.ticks, std::uint64_t{1}));
    const double cpu = static_cast<double>(to.cpu_time_us - from.cpu_time_us) * 1e3;
    if (started > 0 && cpu / tick >= WorkCount::kLeastTicks - 0.5) count.cpu = cpu / started;
}

}  // namespace wq
