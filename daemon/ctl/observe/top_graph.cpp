// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ctl/observe/top_table.h"

namespace wq::ctl {
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
