// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bpf/histogram.h"

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

// One column of a graph, in cells from the bottom.
struct Bar {
    std::size_t low = 0, high = 0;
};

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

// A graph of HEIGHT lines with labels at the top and the bottom of its scale; the last bar is at the right.
std::vector<std::string> drawn(const std::vector<Bar>& bars, std::size_t width, std::size_t height,
                               const std::string& top, const std::string& bottom) {
    std::vector<std::string> out;
    for (std::size_t line = height; line > 0; line--) {
        const std::string& label = line == height ? top : line == 1 ? bottom : "";
        std::string text = fmt::format("{:>{}}|", label, kGutter - 1) + std::string(width - bars.size(), ' ');
        for (const Bar& bar : bars) text += line <= bar.low ? '#' : line <= bar.high ? ':' : ' ';
        out.push_back(std::move(text));
    }
    return out;
}

// The number of cells for VALUE on a scale from 0 to MOST: at least one, unless VALUE is 0.
std::size_t linear(double value, double most, std::size_t height) {
    if (value <= 0 || most <= 0) return 0;
    const double cells = value / most * static_cast<double>(height);
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(cells)), 1, height);
}

// The same on a logarithmic scale where LEAST is one cell.
std::size_t logarithmic(const Value& value, double least, double most, std::size_t height) {
    if (!value) return 0;
    if (most <= least) return 1;
    const double part = std::log(std::max(*value, least) / least) / std::log(most / least);
    return 1 + static_cast<std::size_t>(std::lround(part * static_cast<double>(height - 1)));
}

std::vector<std::string> rates(const Points& points, std::size_t width, std::size_t height) {
    double most = 0;
    for (const auto& one : points) most = std::max(most, one.per_second);
    std::vector<Bar> bars;
    for (const auto& one : points) {
        const std::size_t cells = linear(one.per_second, most, height);
        bars.push_back({cells, cells});
    }
    return drawn(bars, width, height, count_text(most), "0");
}

std::vector<std::string> times(const Points& points, bool function, std::size_t width, std::size_t height) {
    Value least, most;
    for (const auto& one : points)
        for (const Value& value : {one.low, one.high}) {
            if (!value) continue;
            const double ns = std::max(*value, 1.0);  // 0 has no logarithm
            least = std::min(ns, least.value_or(ns));
            most = std::max(ns, most.value_or(ns));
        }
    std::vector<Bar> bars;
    for (const auto& one : points) {
        const std::size_t high = logarithmic(one.high, least.value_or(1), most.value_or(1), height);
        bars.push_back(
            {function ? high : logarithmic(one.low, least.value_or(1), most.value_or(1), height), high});
    }
    return drawn(bars, width, height, most ? time_text(*most) : "-", least ? time_text(*least) : "-");
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
    std::vector<std::string> out{rate_caption(points)};
    const auto append = [&](std::vector<std::string> more) {
        for (auto& line : more) out.push_back(std::move(line));
    };
    append(rates(shown, width, height));
    out.push_back(time_caption(points, function));
    append(times(shown, function, width, height));
    out.push_back(axis(points, width));
    if (out.size() > lines) out.resize(lines);
    for (auto& line : out) line.resize(std::min(line.size(), columns));
    return out;
}

}  // namespace wq::ctl
