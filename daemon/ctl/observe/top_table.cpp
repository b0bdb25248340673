// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/text.h"
#include "ctl/render/terminal.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kLeastName = 16;  // width of the first column, if the terminal is wide enough

// The first column of a table is as wide as its longest text, or as the other columns allow.
template <class Row>
struct Column {
    const char* title;
    const char* key;
    std::size_t width;
    unsigned rank;  // 1 is the most important; 0 is always shown
    std::string (*text)(const Row&);
    std::optional<double> (*value)(const Row&);  // null: sorted by text, and left-aligned
};

std::string count_of(std::uint64_t value) {
    return count_text(static_cast<double>(value));
}
std::string count_if(bool applies, std::uint64_t value) {
    return applies ? count_of(value) : "-";
}
std::string time_of(const std::optional<double>& ns) {
    return ns ? time_text(*ns) : "-";
}
std::string percent_of(const std::optional<double>& share) {
    return share ? fmt::format("{:.1f}", *share * 100) : "-";
}
std::optional<double> value_if(bool applies, std::uint64_t value) {
    return applies ? std::optional(static_cast<double>(value)) : std::nullopt;
}
std::optional<double> wakeups(const WorkqueueRow& r) {
    return value_if(r.now.unbound || r.now.managed, r.now.unbound ? r.now.repatriated : r.now.cm_wakeup);
}
std::optional<double> cpu_time(const WorkqueueRow& r) {
    return value_if(!r.now.bh, r.now.cpu_time_us * 1000);
}

using W = WorkqueueRow;
using Value = std::optional<double>;
// Like the kernel's wq_monitor.py: a count that cannot apply to a workqueue is '-', not 0.
constexpr std::array kWorkqueues{
    Column<W>{"WORKQUEUE", "name", 0, 0, [](const W& r) { return printable(r.now.name); }, nullptr},
    Column<W>{"TOTAL", "total", 7, 7,
              [](const W& r) { return count_of(r.now.started) + (r.was_reset ? "*" : ""); },
              [](const W& r) { return value_if(true, r.now.started); }},
    Column<W>{"INFL", "inflight", 5, 3, [](const W& r) { return count_of(r.in_flight()); },
              [](const W& r) { return value_if(true, r.in_flight()); }},
    Column<W>{"ITEMS/S", "rate", 7, 1, [](const W& r) { return count_text(r.per_second); },
              [](const W& r) { return Value(r.per_second); }},
    Column<W>{"CPU%", "cpu", 6, 4, [](const W& r) { return percent_of(r.cpu); },
              [](const W& r) { return r.cpu; }},
    Column<W>{"P50", "p50", 5, 5, [](const W& r) { return time_of(r.p50); },
              [](const W& r) { return r.p50; }},
    Column<W>{"P90", "p90", 5, 8, [](const W& r) { return time_of(r.p90); },
              [](const W& r) { return r.p90; }},
    Column<W>{"P99", "p99", 5, 2, [](const W& r) { return time_of(r.p99); },
              [](const W& r) { return r.p99; }},
    Column<W>{"LOCK", "lock", 5, 6, [](const W& r) { return time_of(r.lock); },
              [](const W& r) { return r.lock; }},
    Column<W>{"CPUTIME", "cputime", 7, 9, [](const W& r) { return time_of(cpu_time(r)); }, cpu_time},
    Column<W>{"HOGS", "hogs", 5, 10, [](const W& r) { return count_if(r.now.managed, r.now.cpu_intensive); },
              [](const W& r) { return value_if(r.now.managed, r.now.cpu_intensive); }},
    Column<W>{"CMW/RPR", "wakeups", 7, 11,
              [](const W& r) { return wakeups(r) ? count_text(*wakeups(r)) : "-"; }, wakeups},
    Column<W>{"MAYDAY", "mayday", 6, 12, [](const W& r) { return count_if(r.now.mem_reclaim, r.now.mayday); },
              [](const W& r) { return value_if(r.now.mem_reclaim, r.now.mayday); }},
    Column<W>{"RESCUED", "rescued", 7, 13,
              [](const W& r) { return count_if(r.now.mem_reclaim, r.now.rescued); },
              [](const W& r) { return value_if(r.now.mem_reclaim, r.now.rescued); }},
};

using F = FunctionRow;
constexpr std::array kFunctions{
    Column<F>{"FUNCTION", "name", 0, 0, [](const F& r) { return printable(r.function); }, nullptr},
    Column<F>{"WORKQUEUE", "workqueue", 20, 3, [](const F& r) { return printable(r.workqueue); }, nullptr},
    Column<F>{"ITEMS/S", "rate", 7, 2, [](const F& r) { return count_text(r.per_second); },
              [](const F& r) { return Value(r.per_second); }},
    Column<F>{"BUSY%", "busy", 6, 1, [](const F& r) { return percent_of(r.busy); },
              [](const F& r) { return Value(r.busy); }},
    Column<F>{"MEAN", "mean", 5, 4, [](const F& r) { return time_text(r.mean); },
              [](const F& r) { return Value(r.mean); }},
    Column<F>{"ITEMS", "items", 7, 5, [](const F& r) { return count_of(r.items); },
              [](const F& r) { return value_if(true, r.items); }},
};

// Keeps both ends of a long name, to tell it from others.
std::string shortened(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    if (width < 3) return text.substr(0, width);
    const std::size_t tail = (width - 1) / 2;
    return text.substr(0, width - 1 - tail) + "~" + text.substr(text.size() - tail);
}

template <class Row>
void sort_rows(std::vector<Row>& rows, std::span<const Column<Row>> columns, const TopOrder& order) {
    const auto at =
        std::ranges::find_if(columns, [&](const auto& column) { return order.key == column.key; });
    const Column<Row>& by = at != columns.end() ? *at : columns.front();
    const Column<Row>& name = columns.front();
    const auto before = [&](const Row& a, const Row& b) {
        if (by.value == nullptr) return natural_less(by.text(a), by.text(b));
        return by.value(a) > by.value(b);  // rows without a value come last
    };
    std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) {
        const Row& first = order.reverse ? b : a;
        const Row& second = order.reverse ? a : b;
        if (before(first, second)) return true;
        if (before(second, first)) return false;
        return natural_less(name.text(a), name.text(b));
    });
}

// The columns that fit beside a first column of width NAME, in the order of ALL.
template <class Row>
std::vector<const Column<Row>*> that_fit(std::span<const Column<Row>> all, std::size_t name,
                                         std::size_t columns) {
    std::vector<const Column<Row>*> ranked;
    for (const auto& column : all) ranked.push_back(&column);
    std::ranges::sort(ranked, {}, &Column<Row>::rank);
    std::size_t used = name;
    std::size_t fit = 1;
    for (; fit < ranked.size() && used + 1 + ranked[fit]->width <= columns; fit++)
        used += 1 + ranked[fit]->width;
    ranked.resize(fit);
    std::ranges::sort(ranked);  // by address, which is the order in ALL
    return ranked;
}

template <class Row>
TopTable lay_out_by(std::vector<Row> rows, std::span<const Column<Row>> all, const TopOrder& order,
                    std::size_t columns) {
    sort_rows(rows, all, order);
    const Column<Row>& name = all.front();
    std::size_t longest = std::string_view(name.title).size();
    for (const Row& row : rows) longest = std::max(longest, name.text(row).size());
    const auto shown = that_fit(all, std::min({longest, kLeastName, columns}), columns);
    std::size_t others = 0;
    for (const auto* column : shown) others += column == &name ? 0 : 1 + column->width;
    const std::size_t name_width = std::min(longest, columns - others);

    TopTable table;
    const auto append = [&](std::string& line, const Column<Row>& column, const std::string& text) {
        if (&column == &name) {
            line += fmt::format("{:<{}}", shortened(text, name_width), name_width);
        } else if (column.value == nullptr) {
            line += fmt::format(" {:<{}}", shortened(text, column.width), column.width);
        } else {
            line += fmt::format(" {:>{}}", text, column.width);
        }
    };
    for (const auto* column : shown) {
        if (order.key == column->key) table.sorted_at = table.header.size() + (column == &name ? 0 : 1);
        append(table.header, *column, column->title);
        if (order.key == column->key) table.sorted_width = table.header.size() - table.sorted_at;
    }
    for (const Row& row : rows) {
        std::string line;
        for (const auto* column : shown) append(line, *column, column->text(row));
        table.rows.push_back(std::move(line));
        table.keys.push_back(key_of(row));
    }
    return table;
}

template <class Columns>
std::vector<std::string> keys_of(const Columns& columns) {
    std::vector<std::string> out;
    out.reserve(std::size(columns));
    for (const auto& column : columns) out.emplace_back(column.key);
    return out;
}

}  // namespace

std::vector<std::string> sort_keys(bool functions) {
    return functions ? keys_of(kFunctions) : keys_of(kWorkqueues);
}

TopTable lay_out(std::vector<WorkqueueRow> rows, const TopOrder& order, std::size_t columns) {
    return lay_out_by<WorkqueueRow>(std::move(rows), kWorkqueues, order, columns);
}

TopTable lay_out(std::vector<FunctionRow> rows, const TopOrder& order, std::size_t columns) {
    return lay_out_by<FunctionRow>(std::move(rows), kFunctions, order, columns);
}

std::vector<std::string> help_lines() {
    return {
        "Keys",
        "  q            quits; in a graph it goes back",
        "  Enter        opens the selected row's last minutes as a graph; Esc goes back",
        "  < >          sort by the column to the left, to the right; r reverses",
        "  f            workqueues or functions, with --functions",
        "  arrows, page keys, Home, End   select a row; Home: always the first one",
        "",
        "Columns; - where a number cannot be known",
        "  ITEMS/S      items that started, per second      INFL  started, not completed",
        "  CPU%         CPU time, 100 is one CPU            TOTAL, CPUTIME  so far",
        "  P50 P90 P99  wait from queueing to start, lock included",
        "  LOCK         mean wait for pool->lock",
        "  HOGS         items that held a CPU too long",
        "  CMW/RPR      per-CPU: workers woken because another slept or hogged the CPU;",
        "               unbound: workers moved back into their scope",
        "  MAYDAY       calls for the rescuer               RESCUED  items that it ran",
        "  BUSY%        of a function: workers kept busy, 100 is one, with sleep",
        "  MEAN         of a function: time from start to end",
        "",
        "wq-tunectl(1), section TOP, has the details.",
    };
}

std::string summary(const TopInterval& interval) {
    double rate = 0, cpu = 0;
    for (const auto& row : interval.workqueues) {
        rate += row.per_second;
        cpu += row.cpu.value_or(0);
    }
    return fmt::format("{:.1f} s: {}, {} items/s, {:.2f} CPUs", interval.seconds,
                       plural(interval.workqueues.size(), "workqueue"), count_text(rate), cpu);
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

}  // namespace wq::ctl
