// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/bench_page.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.h"
#include "ctl/lab/bench_load.h"
#include "ctl/render/terminal.h"
#include "ctl/report/report_page.h"
#include "ctl/report/report_plot.h"

namespace wq::bench {

namespace {

constexpr double kWidth = 420;
constexpr double kLeft = 84;  // leaves space for the scopes
constexpr double kRow = 24;

// Draws a line for each scope, with the MB/s of each run as a dot, and their median.
std::string runs_svg(const BenchResult& result) {
    double most = 0;
    for (const Row& row : result.rows)
        for (const Figures& run : row.runs) most = std::max(most, run.mb_per_s);
    const auto x = [&](double value) { return kLeft + (kWidth - kLeft - 12) * value / std::max(most, 1e-9); };
    const double height = kRow * (static_cast<double>(result.rows.size()) + 1);
    std::string out = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"MB/s of each run\">\n", kWidth, height);
    double y = kRow / 2;
    for (const Row& row : result.rows) {
        out +=
            fmt::format("<text x=\"4\" y=\"{:.1f}\">{}</text>\n<path class=\"grid\" d=\"M{} {:.1f}H{}\"/>\n",
                        y + 4, ctl::escape(row.scope), kLeft, y, kWidth - 4);
        std::string dots;
        for (const Figures& run : row.runs) dots += fmt::format("M{:.1f} {:.1f}h0", x(run.mb_per_s), y);
        if (!row.runs.empty())
            out += fmt::format(
                "<path class=\"dots\" stroke-width=\"5\" d=\"{}\"/>\n<path class=\"median\" d=\"M{:.1f} "
                "{:.1f}v16\"/>\n",
                dots, x(medians_of(row).mb_per_s), y - 8);
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
        if (!row.effect) continue;
        end = std::max(end, std::abs(row.effect->percent));
        if (const auto& interval = row.effect->interval)
            end = std::max({end, std::abs(interval->low), std::abs(interval->high)});
    }
    return std::min(end, ctl::kMostPercent);
}

std::string scopes_table(const BenchResult& result) {
    std::vector<ctl::Heading> headings{{"Scope"}};
    const auto names = figure_names();
    for (const std::string& name : names) headings.push_back({name, true});
    headings.push_back({"Effect"});
    headings.push_back({""});
    const double end = end_of_scale(result);
    std::string rows;
    for (const Row& row : result.rows) {
        rows += "<tr>" + ctl::cell("Scope", ctl::code(row.scope), "short");
        const auto texts = figure_texts(row);
        for (std::size_t i = 0; i < names.size(); i++)
            rows += ctl::cell(names[i], ctl::escape(texts[i]), "num");
        rows += ctl::cell("Effect", fmt::format("<span class=\"{}\">{}</span>", ctl::escape(row.verdict),
                                                ctl::escape(effect_text(result, row))));
        rows += ctl::cell(
                    "", row.effect ? ctl::effect_bar_svg(*row.effect, end, wq::effect_text(*row.effect)) : "",
                    "bar") +
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
            percent.push_back(100 * (reference.runs[run].mb_per_s / row.runs[run].mb_per_s - 1));
        if (percent.empty() || !row.effect) continue;
        const std::string title = fmt::format("{} against {}: cost of a byte", row.scope, reference.scope);
        out += "<figure>" + ctl::effects_svg(percent, *row.effect, 0, title, title) + "</figure>\n";
    }
    return out.empty() ? "" : "<div class=\"plots\">\n" + out + "</div>\n";
}

}  // namespace

std::string bench_page(const BenchResult& result, const std::string& machine) {
    std::string body = fmt::format(
        "<section id=\"result\">\n<h2>Result</h2>\n<p>{}</p>\n<div class=\"plots\"><figure>{}</figure>"
        "</div>\n{}<p>{}</p>\n<p>{}</p>\n",
        ctl::escape(finding(result)), runs_svg(result), scopes_table(result),
        ctl::escape(host_text(result.host)), ctl::escape(settings_text(result)));
    body +=
        "<p>Medians of the runs. P50, P90, P99 and CPU in microseconds: of a write, and of CPU time per work "
        "item. The bar points to the left if the scope is better.</p>\n";
    if (!result.missing.empty()) body += "<p>Not counted: " + ctl::escape(result.missing) + "</p>\n";
    if (!result.stopped.empty()) body += "<p>Ended early: " + ctl::escape(result.stopped) + "</p>\n";
    body += "</section>\n";
    if (const std::string pairs = pairs_html(result); !pairs.empty())
        body += "<section id=\"trials\">\n<h2>Pairs</h2>\n" + pairs + "</section>\n";
    const ctl::ReportHead head{"", result.host.kernel, "wq-tunectl bench", "not running: bench needs none",
                               result.time};
    return ctl::report_page(head, body + machine);
}

namespace {

using ctl::printable;
using ctl::wrapped;

std::string microseconds(double ns) {
    return fmt::format("{:.1f}", ns / 1000);
}

std::string llcs_text(const std::vector<unsigned>& cores) {
    const auto [least, most] = std::minmax_element(cores.begin(), cores.end());
    const std::string sizes =
        *least == *most ? plural(*most, "core") : fmt::format("{} to {} cores", *least, *most);
    return fmt::format("{} of {}", plural(cores.size(), "LLC"), sizes);
}

std::string size_text(const Host& host) {
    return host.cache_shard_size ? std::to_string(*host.cache_shard_size) : "-";
}

constexpr const char* kLegend =
    "Medians of the runs. P50, P90, P99, CPU: microseconds, of a write and of CPU time per work item. "
    "KWORKERS: those of all unbound workqueues. EFFECT: of the time per byte, the median "
    "of the pairs and its 95% interval.";

}  // namespace

std::string host_text(const Host& host) {
    std::string out = host.cpu.empty() ? "unknown CPU" : printable(host.cpu);
    out += ", " + plural(host.cpus, "CPU") + ", " + plural(host.cores, "core");
    if (!host.llc_cores.empty()) out += ", " + llcs_text(host.llc_cores);
    if (host.is_virtual) out += *host.is_virtual ? ", virtual" : ", not virtual";
    out += ", kernel " + printable(host.kernel);
    if (host.cache_shard_size) out += fmt::format(", cache_shard_size {}", *host.cache_shard_size);
    return out;
}

std::string settings_text(const BenchResult& result) {
    const Settings& s = result.settings;
    return fmt::format("{} with {} of {} KiB in flight, {} of {:g} s; dm-crypt over null_blk; wq-tuned {}",
                       plural(s.writers, "writer"), plural(s.depth, "write"), kBlock / 1024,
                       plural(result.rounds, "round"), s.seconds, printable(result.version));
}

std::string effect_text(const BenchResult& result, const Row& row) {
    if (&row == result.rows.data()) return "reference";
    if (!row.effect) return "-";
    const std::string out = wq::effect_text(*row.effect);
    return row.verdict.empty() ? out : out + ", " + printable(row.verdict);
}

std::string finding(const BenchResult& result) {
    const std::string reference = result.rows.empty() ? "" : printable(result.rows.front().scope);
    if (result.rounds == 0) return "Nothing was measured.";
    if (const Row* best = best_of(result))
        return fmt::format("{} against {}, this kernel's scope: {}.", printable(best->scope), reference,
                           wq::effect_text(*best->effect));
    return fmt::format("No scope is known to be better than {}, this kernel's.", reference);
}

std::vector<std::string> figure_names() {
    return {"POOLS", "KWORKERS", "ITEMS/S", "MB/S", "P50", "P90", "P99", "CPU"};
}

std::vector<std::string> figure_texts(const Row& row) {
    std::vector<std::string> out{row.pools ? std::to_string(*row.pools) : "-"};
    if (row.runs.empty()) {
        out.resize(figure_names().size(), "-");
        return out;
    }
    const Figures f = medians_of(row);
    out.push_back(fmt::format("{:.0f}", f.kworkers));
    out.push_back(f.items_per_s ? fmt::format("{:.0f}", *f.items_per_s) : "-");
    out.push_back(fmt::format("{:.1f}", f.mb_per_s));
    for (const double ns : {f.p50, f.p90, f.p99}) out.push_back(microseconds(ns));
    out.push_back(f.cpu ? microseconds(*f.cpu) : "-");
    return out;
}

std::string bench_table(const BenchResult& result, std::size_t columns, bool colour) {
    std::vector<std::string> header{"SCOPE"};
    for (std::string& name : figure_names()) header.push_back(std::move(name));
    header.emplace_back("EFFECT");
    ctl::Table table(std::move(header));
    for (const Row& row : result.rows) {
        std::vector<std::string> cells{printable(row.scope)};
        for (std::string& text : figure_texts(row)) cells.push_back(std::move(text));
        cells.push_back(effect_text(result, row));
        table.add(std::move(cells));
    }
    std::string out = table.text(columns, colour) + "\n" + wrapped(finding(result), columns) +
                      wrapped(host_text(result.host), columns) + wrapped(settings_text(result), columns) +
                      wrapped(kLegend, columns);
    if (!result.missing.empty()) out += wrapped("Not counted: " + printable(result.missing), columns);
    if (!result.stopped.empty()) out += wrapped("Ended early: " + printable(result.stopped), columns);
    return out;
}

std::string compare_table(const std::vector<std::pair<std::string, BenchResult>>& results,
                          std::size_t columns, bool colour) {
    std::vector<std::string> header{"#", "KERNEL", "SHARD", "SCOPE"};
    for (std::string& name : figure_names()) header.push_back(std::move(name));
    header.emplace_back("EFFECT");
    ctl::Table table(std::move(header));
    std::string legend;
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [file, result] = results[i];
        for (const Row& row : result.rows) {
            std::vector<std::string> cells{std::to_string(i + 1), printable(result.host.kernel),
                                           size_text(result.host), printable(row.scope)};
            for (std::string& text : figure_texts(row)) cells.push_back(std::move(text));
            cells.push_back(effect_text(result, row));
            table.add(std::move(cells));
        }
        legend += wrapped(fmt::format("{}: {}: {}; {}", i + 1, printable(file), host_text(result.host),
                                      settings_text(result)),
                          columns);
    }
    return table.text(columns, colour) + "\n" + legend +
           wrapped("SHARD: workqueue.cache_shard_size. Effects are against the reference of the same file.",
                   columns) +
           wrapped(kLegend, columns);
}

}  // namespace wq::bench
