// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "ctl/json_values.h"
#include "ctl/observe/top_command.h"

namespace wq::ctl {
namespace {

using nlohmann::ordered_json;

ordered_json count_or_null(bool applies, std::uint64_t value) {
    return applies ? ordered_json(value) : ordered_json(nullptr);
}

std::optional<double> cpu_seconds(const KernelWorkqueue& workqueue) {
    if (workqueue.bh) return std::nullopt;
    return static_cast<double>(workqueue.cpu_time_us) / 1e6;
}

ordered_json row_json(const WorkqueueRow& row) {
    const KernelWorkqueue& now = row.now;
    return {{"name", now.name},
            {"id", row.id},
            {"kind", now.unbound ? "unbound" : "per-cpu"},
            {"total", now.started},
            {"in_flight", row.in_flight()},
            {"cpu_seconds", or_null(cpu_seconds(now))},
            {"cpu_hogs", count_or_null(now.managed, now.cpu_intensive)},
            {"cm_wakeups", count_or_null(now.managed, now.cm_wakeup)},
            {"repatriated", count_or_null(now.unbound, now.repatriated)},
            {"mayday", count_or_null(now.mem_reclaim, now.mayday)},
            {"rescued", count_or_null(now.mem_reclaim, now.rescued)},
            {"reset", row.reset},
            {"items", row.items},
            {"per_second", row.per_second},
            {"cpu", or_null(row.cpu)},
            {"timed", row.timed},
            {"wait_ns", {{"p50", or_null(row.p50)}, {"p90", or_null(row.p90)}, {"p99", or_null(row.p99)}}},
            {"lock_ns", or_null(row.lock)}};
}

ordered_json row_json(const FunctionRow& row) {
    return {{"function", row.function}, {"workqueue", row.workqueue},   {"id", row.id},
            {"items", row.items},       {"per_second", row.per_second}, {"busy", row.busy},
            {"mean_ns", row.mean}};
}

template <class Row>
ordered_json rows_json(const std::vector<Row>& rows) {
    auto out = ordered_json::array();
    for (const Row& row : rows) out.push_back(row_json(row));
    return out;
}

bool is_idle(const WorkqueueRow& row) {
    return row.items == 0 && row.timed == 0 && row.in_flight() == 0;
}

std::string text_of(const TopTable& table) {
    return fmt::format("{}\n{}{}", table.header, fmt::join(table.rows, "\n"), table.rows.empty() ? "" : "\n");
}

}  // namespace

ordered_json interval_json(const TopInterval& interval, bool functions, const std::string& limits,
                           std::int64_t time) {
    ordered_json out{{"time", time},
                     {"seconds", interval.seconds},
                     {"lost", interval.lost},
                     {"limits", limits},
                     {"workqueues", rows_json(interval.workqueues)}};
    if (functions) out["functions"] = rows_json(interval.functions);
    return out;
}

std::string interval_text(const TopInterval& interval, const TopOptions& options, std::size_t columns) {
    TopOrder order = options.order;
    if (order.key.empty()) order.key = options.functions ? "busy" : "rate";
    std::string out = summary(interval) + "\n";
    if (options.functions) {
        out += text_of(lay_out(interval.functions, order, columns));
    } else {
        auto rows = interval.workqueues;
        const std::size_t idle = options.names.empty() ? std::erase_if(rows, is_idle) : 0;
        const bool reset = std::ranges::any_of(rows, &WorkqueueRow::was_reset);
        out += text_of(lay_out(std::move(rows), order, columns));
        if (idle > 0) out += fmt::format("{} idle\n", idle);
        if (reset) out += std::string(kResetNote) + "\n";
    }
    if (interval.lost > 0) out += fmt::format("not timed: {}\n", plural(interval.lost, "item"));
    return out + (options.once ? "" : "\n");
}

}  // namespace wq::ctl
