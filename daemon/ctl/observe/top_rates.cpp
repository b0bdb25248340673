// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

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

// The value of KEY; nullptr if there is none.
template <class Map>
const typename Map::mapped_type* found(const Map& all, const typename Map::key_type& key) {
    const auto at = all.find(key);
    return at == all.end() ? nullptr : &at->second;
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
        const Known* earlier = found(known_, key);
        WorkqueueRow row;
        row.now = one;
        row.id = earlier != nullptr ? earlier->id : ++last_id_;
        if (const auto* timed = found(sample.times, one.address))
            add_times(row, *timed, found(before_.times, one.address));
        add_kernel_counts(row, earlier != nullptr ? &earlier->last : nullptr, out.seconds);
        row.was_reset = row.reset || (earlier != nullptr && earlier->was_reset);
        known[key] = {row.id, row.was_reset, one};
        rows[one.address] = out.workqueues.size();
        out.workqueues.push_back(std::move(row));
    }
    known_ = std::move(known);
    // The monitor deletes its sums for an address that is no longer in use, and starts at zero if it is
    // reused.
    std::erase_if(sample.times, [&](const auto& one) { return !rows.contains(one.first); });
    std::erase_if(sample.functions, [&](const auto& one) { return !rows.contains(one.first.first); });
    for (const auto& [key, one] : sample.functions) {
        FunctionRow row = function_row(one, found(before_.functions, key), out.seconds);
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
    if (value < 9.95 && value != static_cast<double>(static_cast<int>(value)))
        return fmt::format("{:.1f}", value);
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

void TopHistory::add(const TopInterval& interval) {
    Past& past = intervals_.emplace_back(Past{interval.seconds, {}});
    for (const auto& row : interval.workqueues)
        if (row.items > 0 || row.timed > 0)
            past.busy[key_of(row)] = {interval.seconds, row.per_second, row.p50, row.p99};
    for (const auto& row : interval.functions)
        past.busy[key_of(row)] = {interval.seconds, row.per_second, std::nullopt, row.mean};
    if (intervals_.size() > kMost) intervals_.pop_front();
}

std::vector<HistoryPoint> TopHistory::of(const RowKey& key) const {
    std::vector<HistoryPoint> out;
    for (const Past& past : intervals_) {
        const auto* point = found(past.busy, key);
        out.push_back(point != nullptr ? *point : HistoryPoint{past.seconds, 0, {}, {}});
    }
    return out;
}

namespace {

constexpr std::size_t kGutter = 7;  // for the labels of the scale

using Points = std::vector<HistoryPoint>;
using Value = std::optional<double>;

Value longer(const Value& a, const Value& b) {
    return !a ? b : !b ? a : std::max(a, b);
}

HistoryPoint merged(const HistoryPoint* from, const HistoryPoint* to) {
    HistoryPoint out;
    double items = 0;
    for (; from != to; ++from) {
        out.seconds += from->seconds;
        items += from->per_second * from->seconds;
        out.low = longer(out.low, from->low);
        out.high = longer(out.high, from->high);
    }
    if (out.seconds > 0) out.per_second = items / out.seconds;
    return out;
}

// Merges ALL into at most WIDTH points. The newest are in the last one.
Points squeezed(const Points& all, std::size_t width) {
    const std::size_t each = std::max<std::size_t>((all.size() + width - 1) / width, 1);
    Points out;
    for (std::size_t end = all.size(); end > 0; end -= std::min(end, each))
        out.push_back(merged(&all[end - std::min(end, each)], all.data() + end));
    std::ranges::reverse(out);
    return out;
}

// One column of a graph: '#' up to LOW, ':' up to HIGH.
struct Bar {
    Value low, high;
};

// A graph of HEIGHT lines; the last bar is at the right. The scale, with labels at its top and bottom, begins
// at 0, or if LOGARITHMIC at the lowest value, which is one cell.
std::vector<std::string> drawn(const std::vector<Bar>& bars, bool logarithmic, std::size_t width,
                               std::size_t height) {
    Value least, most;
    for (const auto& bar : bars)
        for (const Value& value : {bar.low, bar.high}) {
            if (!value) continue;
            const double one = logarithmic ? std::max(*value, 1.0) : *value;  // 0 has no logarithm
            least = std::min(one, least.value_or(one));
            most = std::max(one, most.value_or(one));
        }
    const auto cells = [&](const Value& value) -> std::size_t {
        if (!value || (!logarithmic && *value <= 0)) return 0;
        const double part = !logarithmic ? *value / *most
                            : *most > *least
                                ? std::log(std::max(*value, *least) / *least) / std::log(*most / *least)
                                : 0;
        const auto above = static_cast<double>(logarithmic ? height - 1 : height) * part;
        return std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(above)) + (logarithmic ? 1 : 0),
                                       1, height);
    };
    const std::string top = !logarithmic ? count_text(most.value_or(0)) : most ? time_text(*most) : "-";
    const std::string bottom = !logarithmic ? "0" : least ? time_text(*least) : "-";
    std::vector<std::string> out;
    for (std::size_t line = height; line > 0; line--) {
        out.push_back(fmt::format("{:>{}}|{:{}}",
                                  line == height ? top
                                  : line == 1    ? bottom
                                                 : "",
                                  kGutter - 1, "", width - bars.size()));
        for (const Bar& bar : bars)
            out.back() += line <= cells(bar.low) ? '#' : line <= cells(bar.high) ? ':' : ' ';
    }
    return out;
}

std::string time_or_dash(const Value& ns) {
    return ns ? time_text(*ns) : "-";
}

std::string rate_caption(const Points& all) {
    const HistoryPoint mean = merged(all.data(), all.data() + all.size());
    return fmt::format("ITEMS/S  now {}, mean {}", count_text(all.empty() ? 0 : all.back().per_second),
                       count_text(mean.per_second));
}

std::string time_caption(const Points& all, bool function) {
    const HistoryPoint now = all.empty() ? HistoryPoint{} : all.back();
    if (function) return fmt::format("MEAN from start to end, log scale  now {}", time_or_dash(now.high));
    return fmt::format("WAIT from queueing to start, # P50, : P99, log scale  now {}, {}",
                       time_or_dash(now.low), time_or_dash(now.high));
}

std::string axis(const Points& all, std::size_t width) {
    double seconds = 0;
    for (const auto& one : all) seconds += one.seconds;
    const std::string from =
        seconds < 120 ? fmt::format("-{:.0f} s", seconds) : fmt::format("-{:.1f} min", seconds / 60);
    const std::size_t room = width > 4 ? width - 3 : 1;
    return std::string(kGutter, ' ') + fmt::format("{:<{}}now", from, room);
}

}  // namespace

std::vector<std::string> graph_lines(const std::vector<HistoryPoint>& points, bool function,
                                     std::size_t columns, std::size_t lines) {
    const std::size_t width = columns > kGutter ? columns - kGutter : 1;
    const Points shown = squeezed(points, width);
    const std::size_t height = lines > 5 ? (lines - 3) / 2 : 1;
    std::vector<Bar> rates, times;
    for (const auto& one : shown) {
        rates.push_back({one.per_second, one.per_second});
        times.push_back({function ? one.high : one.low, one.high});
    }
    std::vector<std::string> out{rate_caption(points)};
    std::ranges::move(drawn(rates, false, width, height), std::back_inserter(out));
    out.push_back(time_caption(points, function));
    std::ranges::move(drawn(times, true, width, height), std::back_inserter(out));
    out.push_back(axis(points, width));
    if (out.size() > lines) out.resize(lines);
    for (auto& line : out) line.resize(std::min(line.size(), columns));
    return out;
}

}  // namespace wq::ctl
