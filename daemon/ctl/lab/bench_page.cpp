// SPDX-License-Identifier: LGPL-2.1-or-later
// The result of a benchmark: its document, its table and its page.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "ctl/json_values.h"
#include "ctl/lab/bench.h"
#include "ctl/render/status_text.h"
#include "ctl/render/terminal.h"
#include "ctl/report/report.h"

namespace wq::lab {
namespace {

using ctl::effect_in;
using ctl::escape;
using ctl::printable;
using ctl::wrapped;
using nlohmann::json;

constexpr int kFormat = 1;

// The figures of a run: key, member, heading, the unit in which they are shown, its decimal places.
struct NamedFigure {
    const char* key;
    std::optional<double> Figures::*member;
    const char* heading;
    double unit;
    int digits;
};
constexpr std::array kFigures{NamedFigure{"kworkers", &Figures::kworkers, "KWORKERS", 1, 0},
                              NamedFigure{"items_per_s", &Figures::items_per_s, "ITEMS/S", 1, 0},
                              NamedFigure{"mb_per_s", &Figures::mb_per_s, "MB/S", 1, 1},
                              NamedFigure{"p50_ns", &Figures::p50, "P50", 1000, 1},
                              NamedFigure{"p90_ns", &Figures::p90, "P90", 1000, 1},
                              NamedFigure{"p99_ns", &Figures::p99, "P99", 1000, 1},
                              NamedFigure{"cpu_ns_per_item", &Figures::cpu, "CPU", 1000, 1}};

constexpr const char* kLegend =
    "Medians of the runs. P50, P90, P99, CPU: microseconds, of a write and of CPU time per work item. "
    "KWORKERS: those of all unbound workqueues. EFFECT: of the time per byte, the median "
    "of the pairs and its 95% interval.";

// The improved row with the best effect; nullptr if there is none.
const Row* best_of(const std::vector<Row>& rows) {
    const Row* best = nullptr;
    for (const Row& row : rows)
        if (const ArmResult& of = row.result;
            of.verdict == "improved" && of.effect && of.effect->percent < 0 &&
            (best == nullptr || of.effect->percent < best->result.effect->percent))
            best = &row;
    return best;
}

std::string text(const BenchResult& place, const char* key, const char* otherwise = "") {
    const auto& word = place.at(key);
    return word.is_null() ? otherwise : printable(word.get<std::string>());
}
unsigned number(const BenchResult& place, const char* key) {
    return place.at(key).get<unsigned>();
}
bool is_reference(const BenchResult& row) {
    return row.at("role") == "reference";
}

std::string llcs_text(const std::vector<unsigned>& cores) {
    const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
    const std::string sizes =
        *least == *most ? plural(*most, "core") : fmt::format("{} to {} cores", *least, *most);
    return fmt::format(", {} of {}", plural(cores.size(), "LLC"), sizes);
}

// "Intel Xeon E5, 8 CPUs, 8 cores, 8 LLCs of 1 core, virtual, kernel 6.12.107".
std::string host_text(const BenchResult& result) {
    const auto& host = result.at("host");
    std::string out = text(host, "cpu", "unknown CPU") + ", " + plural(number(host, "cpus"), "CPU") + ", " +
                      plural(number(host, "cores"), "core");
    if (const auto llcs = host.at("llc_cores").get<std::vector<unsigned>>(); !llcs.empty())
        out += llcs_text(llcs);
    if (const auto& is_virtual = host.at("virtual"); !is_virtual.is_null())
        out += is_virtual.get<bool>() ? ", virtual" : ", not virtual";
    out += ", kernel " + text(host, "kernel");
    if (!host.at("cache_shard_size").is_null())
        out += fmt::format(", cache_shard_size {}", number(host, "cache_shard_size"));
    return out;
}

std::string settings_text(const BenchResult& result) {
    const auto& s = result.at("settings");
    return fmt::format("{} with {} of {} KiB in flight, {} of {:g} s; dm-crypt over null_blk; wq-tuned {}",
                       plural(number(s, "writers"), "writer"), plural(number(s, "depth"), "write"),
                       kBlock / 1024, plural(number(result, "rounds"), "round"),
                       s.at("seconds").get<double>(), text(result, "wq_tuned"));
}

// The result in one sentence.
std::string finding(const BenchResult& result) {
    const auto& scopes = result.at("scopes");
    const std::string best = text(result, "best");
    if (number(result, "rounds") == 0) return "Nothing was measured.";
    const std::string reference = text(scopes.at(0), "scope");
    for (const auto& row : scopes)
        if (const auto effect = effect_in(row); effect && !best.empty() && text(row, "scope") == best)
            return fmt::format("{} against {}, this kernel's scope: {}.", best, reference,
                               effect_text(*effect));
    return fmt::format("No scope is known to be better than {}, this kernel's.", reference);
}

// The sentences about what is not there.
std::vector<std::string> remarks(const BenchResult& result) {
    std::vector<std::string> out;
    for (const auto& [key, says] : {std::pair{"missing", "Not counted: "}, {"stopped", "Ended early: "}})
        if (const std::string why = text(result, key); !why.empty()) out.push_back(says + why);
    return out;
}

// The columns of kFigures of a scope.
std::vector<std::string> figures_of(const BenchResult& row) {
    const auto& median = row.at("median");
    std::vector<std::string> out{row.at("pools").is_null() ? "-" : std::to_string(number(row, "pools"))};
    for (const NamedFigure& figure : kFigures) {
        const auto value = median.is_null() ? BenchResult() : median.at(figure.key);
        out.push_back(
            value.is_null() ? "-" : fmt::format("{:.{}f}", value.get<double>() / figure.unit, figure.digits));
    }
    return out;
}

// "14% better (10 to 18), improved"; "reference" for the first row.
std::string compared_text(const BenchResult& row) {
    if (is_reference(row)) return "reference";
    const auto effect = effect_in(row);
    const std::string verdict = text(row, "verdict");
    if (!effect) return "-";
    return effect_text(*effect) + (verdict.empty() ? "" : ", " + verdict);
}

// A table with the columns FIRST, then those of each row.
ctl::Table table_of(std::vector<std::string> first) {
    first.emplace_back("POOLS");
    for (const NamedFigure& figure : kFigures) first.emplace_back(figure.heading);
    first.emplace_back("EFFECT");
    return ctl::Table(std::move(first));
}

void add_rows(ctl::Table& table, const std::vector<std::string>& first, const BenchResult& result) {
    for (const auto& row : result.at("scopes")) {
        std::vector<std::string> cells = first;
        cells.push_back(text(row, "scope"));
        for (std::string& figure : figures_of(row)) cells.push_back(std::move(figure));
        cells.push_back(compared_text(row));
        table.add(std::move(cells));
    }
}

constexpr double kWidth = 420;
constexpr double kLeft = 84;  // leaves space for the scopes
constexpr double kRow = 24;

// Draws a line for each scope, with the MB/s of each run as a dot, and their median.
std::string runs_svg(const BenchResult& scopes) {
    double most = 0;
    for (const auto& row : scopes)
        for (const auto& run : row.at("runs")) most = std::max(most, run.at("mb_per_s").get<double>());
    const auto x = [&](double value) { return kLeft + (kWidth - kLeft - 12) * value / std::max(most, 1e-9); };
    std::string out =
        fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"MB/s of each run\">\n", kWidth,
                    kRow * (static_cast<double>(scopes.size()) + 1));
    double y = kRow / 2;
    for (const auto& row : scopes) {
        out +=
            fmt::format("<text x=\"4\" y=\"{:.1f}\">{}</text>\n<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>\n",
                        y + 4, escape(text(row, "scope")), kLeft, y, kWidth - 4);
        std::string dots;
        for (const auto& run : row.at("runs"))
            dots += fmt::format("M{:.1f} {:.1f}h0", x(run.at("mb_per_s")), y);
        if (!dots.empty())
            out += fmt::format(
                "<path class=\"dots\" stroke-width=\"5\" d=\"{}\"/>\n<path class=\"median\" d=\"M{:.1f} "
                "{:.1f}v16\"/>\n",
                dots, x(row.at("median").at("mb_per_s")), y - 8);
        y += kRow;
    }
    for (const double value : {0.0, most / 2, most})
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n", x(value),
                           y + 4, value);
    return out + "</svg>\n";
}

// The scale of all effect bars.
double end_of_scale(const BenchResult& scopes) {
    double end = 5;
    for (const auto& row : scopes) {
        const Effect effect = effect_in(row).value_or(Effect{});
        const auto interval = effect.interval.value_or(Effect::Interval{});
        end = std::max({end, std::abs(effect.percent), std::abs(interval.low), std::abs(interval.high)});
    }
    return std::min(end, ctl::kMostPercent);
}

std::string scopes_html(const BenchResult& scopes) {
    std::vector<ctl::Column> columns{{"Scope", "short"}, {"POOLS", "num"}};
    for (const NamedFigure& figure : kFigures) columns.push_back({figure.heading, "num"});
    columns.insert(columns.end(), {{"Effect"}, {"", "bar"}});
    const double end = end_of_scale(scopes);
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : scopes) {
        auto& cells = rows.emplace_back();
        const auto effect = effect_in(row);
        cells.push_back(ctl::code(text(row, "scope")));
        for (const std::string& figure : figures_of(row)) cells.push_back(escape(figure));
        cells.push_back(fmt::format("<span class=\"{}\">{}</span>",
                                    is_reference(row) ? "" : escape(text(row, "verdict")),
                                    escape(compared_text(row))));
        cells.push_back(effect ? ctl::effect_bar_svg(*effect, end, effect_text(*effect)) : "");
    }
    return ctl::table(columns, rows);
}

// Draws the pairs of each scope and the reference.
std::string pairs_html(const BenchResult& scopes) {
    std::string out;
    for (const auto& row : scopes) {
        const auto& references = scopes.at(0).at("runs");
        const auto effect = effect_in(row);
        std::vector<double> percent;
        for (const auto& run : row.at("runs"))
            if (!is_reference(row) && percent.size() < references.size())
                percent.push_back(100 * (references[percent.size()].at("mb_per_s").get<double>() /
                                             run.at("mb_per_s").get<double>() -
                                         1));
        if (percent.empty() || !effect) continue;
        const std::string title =
            fmt::format("{} against {}: cost of a byte", text(row, "scope"), text(scopes.at(0), "scope"));
        out += "<figure>" + ctl::effects_svg(percent, *effect, 0, title, title) + "</figure>\n";
    }
    return out.empty() ? "" : ctl::section("trials", "Pairs", "<div class=\"plots\">\n" + out + "</div>\n");
}

}  // namespace

BenchResult bench_result(std::int64_t time, const nlohmann::ordered_json& host, const BenchSettings& settings,
                         const Measured& measured) {
    const Row* best = best_of(measured.rows);
    BenchResult out{{"bench", kFormat},
                    {"time", time},
                    {"wq_tuned", version()},
                    {"rounds", measured.rounds},
                    {"missing", measured.missing},
                    {"stopped", measured.stopped},
                    {"host", host},
                    {"settings",
                     {{"writers", settings.writers},
                      {"depth", settings.depth},
                      {"seconds", settings.seconds},
                      {"rounds", settings.rounds},
                      {"block_bytes", kBlock}}},
                    {"best", ctl::word_or_null(best != nullptr ? best->arm : "")},
                    {"scopes", BenchResult::array()}};
    for (const Row& row : measured.rows) {
        BenchResult figures{{"median", nullptr}, {"runs", BenchResult::array()}};
        for (const NamedFigure& figure : kFigures)
            if (const auto summary = summary_of(row, figure.member); !row.runs.empty())
                figures["median"][figure.key] = summary ? BenchResult(summary->median) : nullptr;
        for (const Figures& run : row.runs) {
            auto& each = figures["runs"].emplace_back();
            for (const NamedFigure& figure : kFigures) each[figure.key] = ctl::or_null(run.*figure.member);
        }
        out["scopes"].push_back(row_json("scope", row, &row == measured.rows.data(), figures));
    }
    return out;
}

Result<BenchResult> parse_result(const std::string& text) {
    try {
        auto document = BenchResult::parse(text);
        if (!document.is_object() || !document.contains("bench"))
            return fail("is not what `bench --save` wrote", EBADMSG);
        if (document.at("bench") == kFormat) {
            if (!document.at("scopes").is_array() || document.at("scopes").empty())
                return fail("has no scope", EBADMSG);
            return document;
        }
        return fail(fmt::format("has format {}, this program reads {}", document.at("bench").dump(), kFormat),
                    EBADMSG);
    } catch (const json::exception& e) {
        return fail(json_error_text(e.what()), EBADMSG);
    }
}

std::string bench_page(const BenchResult& result, const std::string& machine) {
    const auto& scopes = result.at("scopes");
    std::string body = fmt::format(
        "<p>{}</p>\n<div class=\"plots\"><figure>{}</figure></div>\n{}<p>{}</p>\n<p>{}</p>\n"
        "<p>Medians of the runs. P50, P90, P99 and CPU in microseconds: of a write, and of CPU time per work "
        "item. The bar points to the left if the scope is better.</p>\n",
        escape(finding(result)), runs_svg(scopes), scopes_html(scopes), escape(host_text(result)),
        escape(settings_text(result)));
    for (const std::string& remark : remarks(result)) body += "<p>" + escape(remark) + "</p>\n";
    return ctl::report_page({"", text(result.at("host"), "kernel"), "wq-tunectl bench",
                             "not running: bench needs none", result.at("time").get<std::int64_t>()},
                            ctl::section("result", "Result", body) + pairs_html(scopes) + machine);
}

std::string bench_table(const BenchResult& result, std::size_t columns, bool colour) {
    ctl::Table table = table_of({"SCOPE"});
    add_rows(table, {}, result);
    std::string out = table.text(columns, colour) + "\n";
    for (const std::string& line :
         {finding(result), host_text(result), settings_text(result), std::string(kLegend)})
        out += wrapped(line, columns);
    for (const std::string& remark : remarks(result)) out += wrapped(remark, columns);
    return out;
}

std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour) {
    ctl::Table table = table_of({"#", "KERNEL", "SHARD", "SCOPE"});
    std::string legend;
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [file, result] = results[i];
        const auto& host = result.at("host");
        add_rows(
            table,
            {std::to_string(i + 1), text(host, "kernel"),
             host.at("cache_shard_size").is_null() ? "-" : std::to_string(number(host, "cache_shard_size"))},
            result);
        legend += wrapped(
            fmt::format("{}: {}: {}; {}", i + 1, printable(file), host_text(result), settings_text(result)),
            columns);
    }
    return table.text(columns, colour) + "\n" + legend +
           wrapped("SHARD: workqueue.cache_shard_size. Effects are against the reference of the same file.",
                   columns) +
           wrapped(kLegend, columns);
}

}  // namespace wq::lab
