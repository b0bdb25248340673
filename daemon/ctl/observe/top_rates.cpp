// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_rates.h"

#include <algorithm>

#include "bpf/histogram.h"

namespace wq::ctl {
namespace {

// EARLIER is null for a new workqueue, which started at zero. When pools are replaced, their counts
// disappear with them, some of them late. Then only the number of timed items is known.
void add_kernel_counts(WorkqueueRow& row, const KernelWorkqueue* earlier, double seconds) {
    const KernelWorkqueue before = earlier != nullptr ? *earlier : KernelWorkqueue{};
    row.reset = earlier != nullptr && (row.now.pools != before.pools || row.now.started < before.started ||
                                       row.now.cpu_time_us < before.cpu_time_us);
    row.items = row.reset ? row.timed : row.now.started - before.started;
    row.per_second = static_cast<double>(row.items) / seconds;
    if (row.reset || row.now.bh) return;
    row.cpu = static_cast<double>(row.now.cpu_time_us - before.cpu_time_us) / 1e6 / seconds;
}

void add_times(WorkqueueRow& row, const WorkTimes& now, const WorkTimes* before) {
    Histogram waited(kTimeBits);
    for (unsigned i = 0; i < now.waited.size(); i++)
        waited.add(i, static_cast<std::uint32_t>(now.waited[i] - (before ? before->waited.at(i) : 0)));
    row.timed = waited.items();
    if (row.timed > 0) {
        row.p50 = waited.percentile(0.5);
        row.p90 = waited.percentile(0.9);
        row.p99 = waited.percentile(0.99);
        row.wait = waited.mean();
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

// An index of ALL by key. It is valid while ALL exists.
template <class Key, class One, class Of>
std::map<Key, const One*> indexed(const std::vector<One>& all, Of key_of) {
    std::map<Key, const One*> out;
    for (const One& one : all) out[key_of(one)] = &one;
    return out;
}

template <class Key, class One>
const One* found(const std::map<Key, const One*>& all, const Key& key) {
    const auto at = all.find(key);
    return at == all.end() ? nullptr : at->second;
}

using FunctionKey = std::pair<std::uint64_t, std::uint64_t>;
FunctionKey function_key(const FunctionTimes& one) {
    return {one.workqueue, one.function};
}

}  // namespace

void TopRates::know(const std::vector<KernelWorkqueue>& workqueues) {
    std::map<Key, Known> known;
    for (const auto& one : workqueues) {
        const Key key{one.address, one.name};
        const auto at = known_.find(key);
        known[key] = at != known_.end() ? at->second : Known{++last_id_};
    }
    known_ = std::move(known);
}

void TopRates::fill(TopInterval& out, const WorkSample& now) {
    const auto workqueues = indexed<Key>(
        before_->workqueues, [](const KernelWorkqueue& one) { return Key(one.address, one.name); });
    const auto address = [](const WorkTimes& one) { return one.address; };
    const auto times = indexed<std::uint64_t>(now.times, address);
    const auto times_before = indexed<std::uint64_t>(before_->times, address);
    std::map<std::uint64_t, const WorkqueueRow*> rows;
    out.workqueues.reserve(now.workqueues.size());
    for (const auto& one : now.workqueues) {
        WorkqueueRow row;
        row.now = one;
        const Key key{one.address, one.name};
        Known& known = known_.at(key);
        const auto* before = found(workqueues, key);
        if (const auto* timed = found(times, one.address))
            add_times(row, *timed, found(times_before, one.address));
        add_kernel_counts(row, before, out.seconds);
        row.id = known.id;
        row.was_reset = known.was_reset = known.was_reset || row.reset;
        rows[one.address] = &out.workqueues.emplace_back(std::move(row));
    }
    const auto functions_before = indexed<FunctionKey>(before_->functions, function_key);
    for (const auto& one : now.functions) {
        FunctionRow row = function_row(one, found(functions_before, function_key(one)), out.seconds);
        const auto workqueue = rows.find(one.workqueue);
        if (row.items == 0 || workqueue == rows.end()) continue;
        row.id = workqueue->second->id;
        row.workqueue = workqueue->second->now.name;
        out.functions.push_back(std::move(row));
    }
}

std::optional<TopInterval> TopRates::add(WorkSample sample) {
    know(sample.workqueues);
    // The monitor deletes its sums for an address that is no longer in use, and starts at zero if it is
    // reused.
    const auto gone = [&](std::uint64_t address) {
        return std::ranges::find(sample.workqueues, address, &KernelWorkqueue::address) ==
               sample.workqueues.end();
    };
    std::erase_if(sample.times, [&](const auto& one) { return gone(one.address); });
    std::erase_if(sample.functions, [&](const auto& one) { return gone(one.workqueue); });
    std::optional<TopInterval> out;
    if (before_ && sample.seconds > before_->seconds) {
        out.emplace();
        out->seconds = sample.seconds - before_->seconds;
        out->lost = sample.lost - before_->lost;
        fill(*out, sample);
    }
    before_ = std::move(sample);
    return out;
}

}  // namespace wq::ctl
