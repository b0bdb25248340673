// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_rates.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "bpf/work_sums.h"

namespace wq::ctl {
namespace {

// EARLIER is null for a new workqueue, which started at zero. When pools are replaced, their counts
// disappear with them, some of them late. Then only the number of timed items is known.
void add_kernel_counts(WorkqueueRow& row, const KernelWorkqueue* earlier, double seconds) {
    if (earlier != nullptr) row.before = *earlier;
    const KernelWorkqueue& before = row.before;
    row.reset = earlier != nullptr && (row.now.pools != before.pools || row.now.started < before.started ||
                                       row.now.cpu_time_us < before.cpu_time_us);
    row.items = row.reset ? row.timed : row.now.started - before.started;
    row.per_second = static_cast<double>(row.items) / seconds;
    if (row.reset || row.now.bh) return;
    row.cpu = static_cast<double>(row.now.cpu_time_us - before.cpu_time_us) / 1e6 / seconds;
}

// The items of the interval, from one of the histograms of WorkTimes.
Histogram times_since(const WorkTimes* before, const WorkTimes& now,
                      std::vector<std::uint32_t> WorkTimes::*items) {
    Histogram out(kTimeBits);
    for (unsigned i = 0; i < (now.*items).size(); i++)
        out.add(i, static_cast<std::uint32_t>((now.*items)[i] - (before ? (before->*items).at(i) : 0)));
    return out;
}

void add_times(WorkqueueRow& row, const WorkTimes& now, const WorkTimes* before) {
    const Histogram waited = times_since(before, now, &WorkTimes::waited);
    row.timed = waited.items();
    if (row.timed > 0) {
        row.p50 = waited.percentile(0.5);
        row.p90 = waited.percentile(0.9);
        row.p99 = waited.percentile(0.99);
        row.wait = waited.mean();
    }
    const Histogram enqueued = times_since(before, now, &WorkTimes::enqueued);
    if (enqueued.items() > 0) {
        row.q50 = enqueued.percentile(0.5);
        row.q90 = enqueued.percentile(0.9);
        row.q95 = enqueued.percentile(0.95);
        row.q99 = enqueued.percentile(0.99);
    }
    const std::uint64_t queued = now.queued - (before ? before->queued : 0);
    const std::uint64_t lock = now.lock_ns - (before ? before->lock_ns : 0);
    if (queued > 0) row.lock = static_cast<double>(lock) / static_cast<double>(queued);
}

FunctionRow function_row(const FunctionTimes& now, const FunctionTimes* before, double seconds) {
    FunctionRow row;
    row.function = now.name;
    row.items = now.items - (before ? before->items : 0);
    const auto busy = static_cast<double>(now.busy_ns - (before ? before->busy_ns : 0));
    row.per_second = static_cast<double>(row.items) / seconds;
    row.busy = busy / 1e9 / seconds;
    if (row.items > 0) row.mean = busy / static_cast<double>(row.items);
    return row;
}

}  // namespace

std::optional<TopInterval> TopRates::add(WorkSample sample) {
    TopInterval out;
    out.seconds = sample.seconds - before_.seconds;
    out.lost = sample.lost - before_.lost;
    std::map<Key, Known> known;
    std::map<std::uint64_t, std::size_t> rows;  // by address
    for (const auto& one : sample.workqueues) {
        const Key key{one.address, one.name};
        const Known* earlier = find_in(known_, key);
        WorkqueueRow row;
        row.now = one;
        row.id = earlier != nullptr ? earlier->id : ++last_id_;
        if (const auto* timed = find_in(sample.times, one.address))
            add_times(row, *timed, find_in(before_.times, one.address));
        add_kernel_counts(row, earlier != nullptr ? &earlier->last : nullptr, out.seconds);
        known[key] = {row.id, one};
        rows[one.address] = out.workqueues.size();
        out.workqueues.push_back(std::move(row));
    }
    known_ = std::move(known);
    // The monitor deletes its sums for an address that is no longer in use, and starts at zero if it is
    // reused.
    std::erase_if(sample.times, [&](const auto& one) { return !rows.contains(one.first); });
    std::erase_if(sample.functions, [&](const auto& one) { return !rows.contains(one.first.first); });
    for (const auto& [key, one] : sample.functions) {
        FunctionRow row = function_row(one, find_in(before_.functions, key), out.seconds);
        if (row.items == 0) continue;
        const WorkqueueRow& workqueue = out.workqueues[rows.at(key.first)];
        row.id = workqueue.id;
        row.workqueue = workqueue.now.name;
        out.functions.push_back(std::move(row));
    }
    before_ = std::move(sample);
    return std::exchange(begun_, true) ? std::optional(std::move(out)) : std::nullopt;
}

std::string count_text(double value) {
    if (value < 9.95 && value != std::trunc(value)) return fmt::format("{:.1f}", value);
    if (value < 9999.5) return fmt::format("{:.0f}", value);
    for (const char unit : {'k', 'M', 'G', 'T'}) {
        value /= 1000;
        if (value < 99.95) return fmt::format("{:.1f}{}", value, unit);
        if (value < 999.5) return fmt::format("{:.0f}{}", value, unit);
    }
    return fmt::format("{:.0f}P", value / 1000);
}

std::string time_text(double ns) {
    double value = ns;
    for (const char* unit : {"ns", "us", "ms"}) {
        if (value < 9.95 && value > 0 && unit[0] != 'n') return fmt::format("{:.1f}{}", value, unit);
        if (value < 999.5) return fmt::format("{:.0f}{}", value, unit);
        value /= 1000;
    }
    if (value < 9.95) return fmt::format("{:.1f}s", value);
    return count_text(std::max(value, 10.0)) + "s";
}

}  // namespace wq::ctl
