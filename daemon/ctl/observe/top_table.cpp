// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/observe/top_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/text.h"
#include "ctl/render/terminal.h"
#include "evidence/json_values.h"

namespace wq::ctl {
namespace {

using Json = nlohmann::ordered_json;
using W = WorkqueueRow;
using F = FunctionRow;

constexpr std::size_t kLeastName = 16;  // width of the first column, if the terminal is wide enough

// How a field is read from a row (null: it is not known, or cannot apply), and taken from a recording.
template <class Row>
struct Access {
    Json (*get)(const Row&);
    void (*set)(Row&, const Json&) = nullptr;
};

// One field of a row. Without a path it is a column only, without a title it is in JSON only.
template <class Row>
struct Field {
    const char* path;  // in the JSON of a row, which is also what a recording has
    Access<Row> value;
    const char* title = nullptr;
    const char* key = "";   // for --sort
    std::size_t width = 0;  // the first column is as wide as its longest text, or as the others allow
    unsigned rank = 0;      // 1 is the most important; 0 is always shown
    std::string (*text)(double) = nullptr;  // null: the value is a name
    const char* help = nullptr;             // "": it shares that of the next field
};

template <class T>
void take(T& to, const Json& value) {
    value.get_to(to);
}
void take(std::optional<double>& to, const Json& value) {
    to = value.is_null() ? std::nullopt : std::optional(value.get<double>());
}
template <class T>
Json given(const T& value) {
    return value;
}
Json given(const std::optional<double>& value) {
    return or_null(value);
}

template <class Row, auto Member>
constexpr Access<Row> of{[](const Row& row) { return given(row.*Member); },
                         [](Row& row, const Json& value) { take(row.*Member, value); }};
template <auto Member>
constexpr Access<W> of_kernel{[](const W& row) { return given(row.now.*Member); },
                              [](W& row, const Json& value) { take(row.now.*Member, value); }};
// A count of the kernel for workqueues of which APPLIES is true. (Like its wq_monitor.py: '-', not 0.)
template <auto Member, auto Applies>
constexpr Access<W> of_kernel_if{
    [](const W& row) { return row.now.*Applies ? Json(row.now.*Member) : Json(); },
    [](W& row, const Json& value) {
        row.now.*Applies = !value.is_null();
        row.now.*Member = value.is_null() ? 0 : value.get<std::uint64_t>();
    },
};
constexpr Access<W> kKind{
    [](const W& row) -> Json { return row.now.unbound ? "unbound" : "per-cpu"; },
    [](W& row, const Json& value) { row.now.unbound = value.get<std::string>() == "unbound"; },
};
constexpr Access<W> kInFlight{
    [](const W& row) -> Json { return row.in_flight(); },
    [](W& row, const Json& value) {
        row.now.completed = row.now.started - std::min(row.now.started, value.get<std::uint64_t>());
    },
};
constexpr Access<W> kCpuSeconds{
    [](const W& row) { return row.now.bh ? Json() : Json(static_cast<double>(row.now.cpu_time_us) / 1e6); },
    [](W& row, const Json& value) {
        row.now.bh = value.is_null();
        row.now.cpu_time_us =
            row.now.bh ? 0 : static_cast<std::uint64_t>(std::llround(value.get<double>() * 1e6));
    },
};
constexpr Access<W> kWakeups{[](const W& row) -> Json {
    if (!row.now.unbound && !row.now.managed) return nullptr;
    return row.now.unbound ? row.now.repatriated : row.now.cm_wakeup;
}};

std::string percent_text(double share) {
    return fmt::format("{:.1f}", share * 100);
}

using K = KernelWorkqueue;
constexpr Field<W> kWorkqueues[] = {
    {"/name", of_kernel<&K::name>, "WORKQUEUE", "name"},
    {"/id", of<W, &W::id>},
    {"/kind", kKind},
    {"/total", of_kernel<&K::started>, "TOTAL", "total", 7, 9, count_text,
     "items that started since the pools were set"},
    {"/in_flight", kInFlight, "INFL", "inflight", 5, 3, count_text, "started, not completed"},
    {"/reset", of<W, &W::reset>},
    {"/items", of<W, &W::items>},
    {"/per_second", of<W, &W::per_second>, "ITEMS/S", "rate", 7, 1, count_text,
     "items that started, per second"},
    {"/cpu", of<W, &W::cpu>, "CPU%", "cpu", 6, 4, percent_text, "CPU time, 100 is one CPU"},
    {"/timed", of<W, &W::timed>},
    {"/wait_ns/p50", of<W, &W::p50>, "P50", "p50", 5, 5, time_text, ""},
    {"/wait_ns/p90", of<W, &W::p90>, "P90", "p90", 5, 10, time_text, ""},
    {"/wait_ns/p99", of<W, &W::p99>, "P99", "p99", 5, 2, time_text,
     "wait from queueing to start, lock included"},
    {"/lock_ns", of<W, &W::lock>, "LOCK", "lock", 5, 6, time_text, "mean wait for pool->lock"},
    {"/enqueue_ns/p50", of<W, &W::q50>, "Q50", "q50", 5, 8, time_text, ""},
    {"/enqueue_ns/p90", of<W, &W::q90>, "Q90", "q90", 5, 11, time_text, ""},
    {"/enqueue_ns/p95", of<W, &W::q95>, "Q95", "q95", 5, 12, time_text, ""},
    {"/enqueue_ns/p99", of<W, &W::q99>, "Q99", "q99", 5, 7, time_text,
     "a producer's time in queue_work(), lock included"},
    {"/cpu_seconds", kCpuSeconds, "CPUTIME", "cputime", 7, 13,
     [](double seconds) { return time_text(seconds * 1e9); }, "CPU time so far"},
    {"/cpu_hogs", of_kernel_if<&K::cpu_intensive, &K::managed>, "HOGS", "hogs", 5, 14, count_text,
     "items that held a CPU too long"},
    {nullptr, kWakeups, "CMW/RPR", "wakeups", 7, 15, count_text,
     "per-CPU: workers woken as another slept or hogged the CPU;\n"
     "unbound: workers moved back into their scope"},
    {"/cm_wakeups", of_kernel_if<&K::cm_wakeup, &K::managed>},
    {"/repatriated", of_kernel_if<&K::repatriated, &K::unbound>},
    {"/mayday", of_kernel_if<&K::mayday, &K::mem_reclaim>, "MAYDAY", "mayday", 6, 16, count_text, ""},
    {"/rescued", of_kernel_if<&K::rescued, &K::mem_reclaim>, "RESCUED", "rescued", 7, 17, count_text,
     "calls for the rescuer, and items that it ran"},
};

constexpr Field<F> kFunctions[] = {
    {"/function", of<F, &F::function>, "FUNCTION", "name"},
    {"/workqueue", of<F, &F::workqueue>, "WORKQUEUE", "workqueue", 20, 3},
    {"/id", of<F, &F::id>},
    {"/per_second", of<F, &F::per_second>, "ITEMS/S", "rate", 7, 2, count_text},
    {"/busy", of<F, &F::busy>, "BUSY%", "busy", 6, 1, percent_text,
     "of a function: workers kept busy, 100 is one, with sleep"},
    {"/mean_ns", of<F, &F::mean>, "MEAN", "mean", 5, 4, time_text, "of a function: time from start to end"},
    {"/items", of<F, &F::items>, "ITEMS", "items", 7, 5, count_text},
};

template <class Row>
std::span<const Field<Row>> fields_of() {
    if constexpr (std::is_same_v<Row, W>)
        return kWorkqueues;
    else
        return kFunctions;
}

template <class Row>
std::optional<double> number_of(const Field<Row>& field, const Row& row) {
    std::optional<double> out;
    take(out, field.value.get(row));
    return out;
}

template <class Row>
std::string text_of(const Field<Row>& field, const Row& row) {
    if (field.text == nullptr) return printable(field.value.get(row).template get<std::string>());
    const auto number = number_of(field, row);
    return number ? field.text(*number) : "-";
}

// Keeps both ends of a long name, to tell it from others.
std::string shortened(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    if (width < 3) return text.substr(0, width);
    const std::size_t tail = (width - 1) / 2;
    return text.substr(0, width - 1 - tail) + "~" + text.substr(text.size() - tail);
}

template <class Row>
void sort_rows(std::vector<Row>& rows, const TopOrder& order) {
    const auto fields = fields_of<Row>();
    const auto at = std::ranges::find_if(
        fields, [&](const auto& field) { return field.title != nullptr && order.key == field.key; });
    const Field<Row>& name = fields.front();
    const Field<Row>& by = at != fields.end() ? *at : name;
    const auto before = [&](const Row& a, const Row& b) {
        if (by.text == nullptr) return natural_less(text_of(by, a), text_of(by, b));
        return number_of(by, a) > number_of(by, b);  // rows without a value come last
    };
    std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) {
        const Row& first = order.reverse ? b : a;
        const Row& second = order.reverse ? a : b;
        if (before(first, second)) return true;
        if (before(second, first)) return false;
        return natural_less(text_of(name, a), text_of(name, b));
    });
}

// The columns that fit beside a first column of width NAME, in the order of the table.
template <class Row>
std::vector<const Field<Row>*> that_fit(std::size_t name, std::size_t columns) {
    std::vector<const Field<Row>*> ranked;
    for (const auto& field : fields_of<Row>())
        if (field.title != nullptr) ranked.push_back(&field);
    std::ranges::sort(ranked, {}, &Field<Row>::rank);
    std::size_t used = name;
    std::size_t fit = 1;
    for (; fit < ranked.size() && used + 1 + ranked[fit]->width <= columns; fit++)
        used += 1 + ranked[fit]->width;
    ranked.resize(fit);
    std::ranges::sort(ranked);  // by address
    return ranked;
}

template <class Row>
TopTable lay_out_by(std::vector<Row> rows, const TopOrder& order, std::size_t columns) {
    sort_rows(rows, order);
    const Field<Row>& name = fields_of<Row>().front();
    std::size_t longest = std::string_view(name.title).size();
    for (const Row& row : rows) longest = std::max(longest, text_of(name, row).size());
    const auto shown = that_fit<Row>(std::min({longest, kLeastName, columns}), columns);
    std::size_t others = 0;
    for (const auto* field : shown) others += field == &name ? 0 : 1 + field->width;
    const std::size_t name_width = std::min(longest, columns - others);

    TopTable table;
    const auto append = [&](std::string& line, const Field<Row>& field, const std::string& text) {
        const std::size_t width = &field == &name ? name_width : field.width;
        if (&field != &name) line += ' ';
        if (field.text == nullptr)
            line += fmt::format("{:<{}}", shortened(text, width), width);
        else
            line += fmt::format("{:>{}}", text, width);
    };
    for (const auto* field : shown) append(table.header, *field, field->title);
    for (const Row& row : rows) {
        std::string line;
        for (const auto* field : shown) append(line, *field, text_of(*field, row));
        table.rows.push_back(std::move(line));
    }
    return table;
}

template <class Row>
std::vector<std::string> keys_of() {
    std::vector<std::string> out;
    for (const auto& field : fields_of<Row>())
        if (field.title != nullptr) out.emplace_back(field.key);
    return out;
}

template <class Row>
void add_help(std::vector<std::string>& out) {
    std::string titles;
    for (const auto& field : fields_of<Row>()) {
        if (field.help == nullptr) continue;
        titles += field.title;
        for (std::string_view rest = field.help; !rest.empty(); titles.clear()) {
            const auto end = std::min(rest.find('\n'), rest.size());
            out.push_back(fmt::format("  {:<15} {}", titles, rest.substr(0, end)));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        if (!titles.empty()) titles += ' ';
    }
}

template <class Row>
Json rows_json(const std::vector<Row>& rows) {
    Json out = Json::array();
    for (const Row& row : rows) {
        Json& one = out.emplace_back();
        for (const auto& field : fields_of<Row>())
            if (field.path != nullptr) one[Json::json_pointer(field.path)] = field.value.get(row);
    }
    return out;
}

template <class Row>
std::vector<Row> rows_of(const Json& rows) {
    std::vector<Row> out;
    for (const auto& one : rows)
        for (Row& row = out.emplace_back(); const auto& field : fields_of<Row>())
            if (field.path != nullptr) field.value.set(row, one.at(Json::json_pointer(field.path)));
    return out;
}

std::string text_of(const TopTable& table) {
    return fmt::format("{}\n{}{}", table.header, fmt::join(table.rows, "\n"), table.rows.empty() ? "" : "\n");
}

}  // namespace

std::vector<std::string> sort_keys(bool functions) {
    return functions ? keys_of<F>() : keys_of<W>();
}

TopTable lay_out(std::vector<W> rows, const TopOrder& order, std::size_t columns) {
    return lay_out_by(std::move(rows), order, columns);
}
TopTable lay_out(std::vector<F> rows, const TopOrder& order, std::size_t columns) {
    return lay_out_by(std::move(rows), order, columns);
}

std::vector<std::string> help_lines() {
    std::vector<std::string> out{
        "Keys",
        "  q            quits",
        "  < >          sort by the column to the left, to the right; r reverses",
        "  f            workqueues or functions, with --functions",
        "  arrows, page keys, Home, End   scroll",
        "",
        "Columns (wq-tunectl(1), section TOP); - where a number cannot be known",
    };
    add_help<W>(out);
    add_help<F>(out);
    return out;
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

std::string interval_text(const TopInterval& interval, const TopOptions& options, std::size_t columns) {
    TopOrder order = options.order;
    if (order.key.empty()) order.key = options.functions ? "busy" : "rate";
    std::string out = summary(interval) + "\n";
    if (options.functions) {
        out += text_of(lay_out(interval.functions, order, columns));
    } else {
        auto rows = interval.workqueues;
        const auto is_idle = [](const W& row) {
            return row.items == 0 && row.timed == 0 && row.in_flight() == 0;
        };
        const std::size_t idle = options.names.empty() ? std::erase_if(rows, is_idle) : 0;
        out += text_of(lay_out(std::move(rows), order, columns));
        if (idle > 0) out += fmt::format("{} idle\n", idle);
    }
    if (interval.lost > 0) out += fmt::format("not timed: {}\n", plural(interval.lost, "item"));
    return out + (options.once ? "" : "\n");
}

Json interval_json(const RecordedInterval& one, bool functions) {
    Json out{{"time", one.time},
             {"seconds", one.interval.seconds},
             {"lost", one.interval.lost},
             {"limits", one.limits},
             {"workqueues", rows_json(one.interval.workqueues)}};
    if (functions) out["functions"] = rows_json(one.interval.functions);
    return out;
}

Result<RecordedInterval> interval_of(const Json& line) {
    try {
        RecordedInterval out;
        line.at("time").get_to(out.time);
        line.at("limits").get_to(out.limits);
        line.at("seconds").get_to(out.interval.seconds);
        line.at("lost").get_to(out.interval.lost);
        out.interval.workqueues = rows_of<W>(line.at("workqueues"));
        out.has_functions = line.contains("functions");
        if (out.has_functions) out.interval.functions = rows_of<F>(line.at("functions"));
        return out;
    } catch (const Json::exception&) {  // a key is missing, or a value has the wrong type
        return fail("not an interval of `wq-tunectl top --json`");
    }
}

}  // namespace wq::ctl
