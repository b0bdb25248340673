// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "ctl/lab/bench_result.h"
#include "ctl/render/terminal.h"
#include "ctl/report/report_page.h"
#include "ctl/report/report_plot.h"

namespace wq::lab {
namespace {

using ctl::escape;
using ctl::printable;
using ctl::wrapped;

constexpr std::array kFigures{"POOLS", "KWORKERS", "ITEMS/S", "MB/S", "P50", "P90", "P99", "CPU"};

constexpr const char* kLegend =
    "Medians of the runs. P50, P90, P99, CPU: microseconds, of a write and of CPU time per work item. "
    "KWORKERS: those of all unbound workqueues. EFFECT: of the time per byte, the median "
    "of the pairs and its 95% interval.";

std::string llcs_text(const std::vector<unsigned>& cores) {
    const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
    const std::string sizes =
        *least == *most ? plural(*most, "core") : fmt::format("{} to {} cores", *least, *most);
    return fmt::format("{} of {}", plural(cores.size(), "LLC"), sizes);
}

std::string settings_text(const BenchResult& result) {
    const Settings& s = result.settings;
    return fmt::format("{} with {} of {} KiB in flight, {} of {:g} s; dm-crypt over null_blk; wq-tuned {}",
                       plural(s.writers, "writer"), plural(s.depth, "write"), kBlock / 1024,
                       plural(result.rounds, "round"), s.seconds, printable(result.version));
}

// "14% better (10 to 18), improved"; "reference" for the first row.
std::string compared_text(const BenchResult& result, const Row& row) {
    if (&row == result.rows.data()) return "reference";
    if (!row.result.effect) return "-";
    const std::string out = effect_text(*row.result.effect);
    return row.result.verdict.empty() ? out : out + ", " + printable(row.result.verdict);
}

// One text for each of kFigures.
std::vector<std::string> figures_of(const Row& row) {
    std::vector<std::string> out{row.pools ? std::to_string(*row.pools) : "-"};
    const auto add = [&](std::optional<double> value, int digits) {
        out.push_back(value && !row.runs.empty() ? fmt::format("{:.{}f}", *value, digits) : "-");
    };
    const Figures f = medians_of(row);
    add(f.kworkers, 0);
    add(f.items_per_s, 0);
    add(f.value, 1);
    for (const auto& ns : {std::optional(f.p50), std::optional(f.p90), std::optional(f.p99), f.cpu})
        add(ns ? std::optional(*ns / 1000) : ns, 1);
    return out;
}

// A table with the columns FIRST, then those of each row.
ctl::Table table_of(std::vector<std::string> first) {
    first.insert(first.end(), kFigures.begin(), kFigures.end());
    first.emplace_back("EFFECT");
    return ctl::Table(std::move(first));
}

void add_rows(ctl::Table& table, const std::vector<std::string>& first, const BenchResult& result) {
    for (const Row& row : result.rows) {
        std::vector<std::string> cells = first;
        cells.push_back(printable(row.arm));
        for (std::string& text : figures_of(row)) cells.push_back(std::move(text));
        cells.push_back(compared_text(result, row));
        table.add(std::move(cells));
    }
}

constexpr double kWidth = 420;
constexpr double kLeft = 84;  // leaves space for the scopes
constexpr double kRow = 24;

// Draws a line for each scope, with the MB/s of each run as a dot, and their median.
std::string runs_svg(const BenchResult& result) {
    double most = 0;
    for (const Row& row : result.rows)
        for (const Figures& run : row.runs) most = std::max(most, run.value);
    const auto x = [&](double value) { return kLeft + (kWidth - kLeft - 12) * value / std::max(most, 1e-9); };
    std::string out =
        fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"MB/s of each run\">\n", kWidth,
                    kRow * (static_cast<double>(result.rows.size()) + 1));
    double y = kRow / 2;
    for (const Row& row : result.rows) {
        out +=
            fmt::format("<text x=\"4\" y=\"{:.1f}\">{}</text>\n<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>\n",
                        y + 4, escape(row.arm), kLeft, y, kWidth - 4);
        std::string dots;
        for (const Figures& run : row.runs) dots += fmt::format("M{:.1f} {:.1f}h0", x(run.value), y);
        if (!row.runs.empty())
            out += fmt::format(
                "<path class=\"dots\" stroke-width=\"5\" d=\"{}\"/>\n<path class=\"median\" d=\"M{:.1f} "
                "{:.1f}v16\"/>\n",
                dots, x(medians_of(row).value), y - 8);
        y += kRow;
    }
    for (const double value : {0.0, most / 2, most})
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.0f}</text>\n", x(value),
                           y + 4, value);
    return out + "</svg>\n";
}

// The scale of all effect bars.
double end_of_scale(const BenchResult& result) {
    double end = 5;
    for (const Row& row : result.rows) {
        const Effect effect = row.result.effect.value_or(Effect{});
        const auto interval = effect.interval.value_or(Effect::Interval{});
        end = std::max({end, std::abs(effect.percent), std::abs(interval.low), std::abs(interval.high)});
    }
    return std::min(end, ctl::kMostPercent);
}

std::string scopes_html(const BenchResult& result) {
    std::vector<ctl::Heading> headings{{"Scope"}};
    for (const char* name : kFigures) headings.push_back({name, true});
    headings.push_back({"Effect"});
    headings.push_back({""});
    const double end = end_of_scale(result);
    std::string rows;
    for (const Row& row : result.rows) {
        const auto& effect = row.result.effect;
        const auto texts = figures_of(row);
        rows += "<tr>" + ctl::cell("Scope", ctl::code(row.arm), "short");
        for (std::size_t i = 0; i < texts.size(); i++)
            rows += ctl::cell(kFigures.at(i), escape(texts[i]), "num");
        rows += ctl::cell("Effect", fmt::format("<span class=\"{}\">{}</span>", escape(row.result.verdict),
                                                escape(compared_text(result, row))));
        rows += ctl::cell("", effect ? ctl::effect_bar_svg(*effect, end, effect_text(*effect)) : "", "bar") +
                "</tr>\n";
    }
    return ctl::table(headings, rows);
}

// Draws the pairs of each scope and the reference.
std::string pairs_html(const BenchResult& result) {
    std::string out;
    for (std::size_t i = 1; i < result.rows.size(); i++) {
        const Row& reference = result.rows.front();
        const Row& row = result.rows[i];
        std::vector<double> percent;
        for (std::size_t run = 0; run < std::min(row.runs.size(), reference.runs.size()); run++)
            percent.push_back(100 * (reference.runs[run].value / row.runs[run].value - 1));
        if (percent.empty() || !row.result.effect) continue;
        const std::string title = fmt::format("{} against {}: cost of a byte", row.arm, reference.arm);
        out += "<figure>" + ctl::effects_svg(percent, *row.result.effect, 0, title, title) + "</figure>\n";
    }
    if (out.empty()) return "";
    return "<section id=\"trials\">\n<h2>Pairs</h2>\n<div class=\"plots\">\n" + out + "</div>\n</section>\n";
}

}  // namespace

std::string bench_page(const BenchResult& result, const std::string& machine) {
    std::string body = fmt::format(
        "<section id=\"result\">\n<h2>Result</h2>\n<p>{}</p>\n<div class=\"plots\"><figure>{}</figure>"
        "</div>\n{}<p>{}</p>\n<p>{}</p>\n"
        "<p>Medians of the runs. P50, P90, P99 and CPU in microseconds: of a write, and of CPU time per work "
        "item. The bar points to the left if the scope is better.</p>\n",
        escape(finding(result)), runs_svg(result), scopes_html(result), escape(host_text(result.host)),
        escape(settings_text(result)));
    if (!result.missing.empty()) body += "<p>Not counted: " + escape(result.missing) + "</p>\n";
    if (!result.stopped.empty()) body += "<p>Ended early: " + escape(result.stopped) + "</p>\n";
    body += "</section>\n" + pairs_html(result) + machine;
    return ctl::report_page(
        {"", result.host.kernel, "wq-tunectl bench", "not running: bench needs none", result.time}, body);
}

std::string host_text(const Host& host) {
    std::string out = host.cpu ? printable(*host.cpu) : "unknown CPU";
    out += ", " + plural(host.cpus, "CPU") + ", " + plural(host.cores, "core");
    if (!host.llc_cores.empty()) out += ", " + llcs_text(host.llc_cores);
    if (host.is_virtual) out += *host.is_virtual ? ", virtual" : ", not virtual";
    out += ", kernel " + printable(host.kernel);
    if (host.cache_shard_size) out += fmt::format(", cache_shard_size {}", *host.cache_shard_size);
    return out;
}

std::string finding(const BenchResult& result) {
    const std::string reference = result.rows.empty() ? "" : printable(result.rows.front().arm);
    if (result.rounds == 0) return "Nothing was measured.";
    if (const Row* best = best_of(result))
        return fmt::format("{} against {}, this kernel's scope: {}.", printable(best->arm), reference,
                           effect_text(*best->result.effect));
    return fmt::format("No scope is known to be better than {}, this kernel's.", reference);
}

std::string bench_table(const BenchResult& result, std::size_t columns, bool colour) {
    ctl::Table table = table_of({"SCOPE"});
    add_rows(table, {}, result);
    std::string out = table.text(columns, colour) + "\n";
    for (const auto& text :
         {finding(result), host_text(result.host), settings_text(result), std::string(kLegend)})
        out += wrapped(text, columns);
    if (!result.missing.empty()) out += wrapped("Not counted: " + printable(result.missing), columns);
    if (!result.stopped.empty()) out += wrapped("Ended early: " + printable(result.stopped), columns);
    return out;
}

std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour) {
    ctl::Table table = table_of({"#", "KERNEL", "SHARD", "SCOPE"});
    std::string legend;
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [file, result] = results[i];
        const auto& shard = result.host.cache_shard_size;
        add_rows(table,
                 {std::to_string(i + 1), printable(result.host.kernel), shard ? std::to_string(*shard) : "-"},
                 result);
        legend += wrapped(fmt::format("{}: {}: {}; {}", i + 1, printable(file), host_text(result.host),
                                      settings_text(result)),
                          columns);
    }
    return table.text(columns, colour) + "\n" + legend +
           wrapped("SHARD: workqueue.cache_shard_size. Effects are against the reference of the same file.",
                   columns) +
           wrapped(kLegend, columns);
}

}  // namespace wq::lab
