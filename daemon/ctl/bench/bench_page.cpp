// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/bench/bench_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "ctl/bench/bench_text.h"
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

}  // namespace wq::bench
