// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ctl/report/report_page.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostInTable = 64;  // pairs

std::string outcome_html(const VerdictRecord& r) {
    if (!r.judged) return "<span class=\"cut-off\">cut off</span>";
    const char* sign = r.outcome == TrialOutcome::regressed  ? "▲ "
                       : r.outcome == TrialOutcome::improved ? "▼ "
                                                             : "";
    return fmt::format("<span class=\"{0}\">{1}{0}</span>", name_of(r.outcome), sign);
}

std::string evidence_text(double log) {
    return fmt::format("{:.3g}", evidence_of(log));
}

// As the judge has it: m/alpha itself may be more than a double holds.
std::optional<double> log_enough_of(const ReportTrial& trial) {
    if (!trial.record.settings) return {};
    return std::log(static_cast<double>(trial.readings->counters.size())) -
           std::log(trial.record.settings->alpha);
}

// All that the pairs say of each counter that is not drawn: without it the dashed line may seem to decide.
std::string others_html(const ReportTrial& trial, double tolerance) {
    const TrialReadings& readings = *trial.readings;
    if (readings.counters.size() < 2) return "";
    std::size_t highest = 0;
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < readings.counters.size(); i++) {
        const double log = running_evidence(readings, i, tolerance).log_regressed.back();
        if (log <= most) continue;
        most = log;
        highest = i;
    }
    return fmt::format(
        "<p class=\"quiet\">Better counts only while no counter&#39;s evidence for worse is above 1; "
        "highest: {} "
        "{}.</p>\n",
        escape(readings.counters[highest].name), evidence_text(most));
}

// Where not all pairs were kept: what is of those, and what of all.
std::string of_which(const ReportTrial& trial) {
    const std::size_t kept = trial.readings->pairs.size();
    if (trial.record.standing.pairs <= kept) return "";
    return fmt::format("; dots and evidence are of the first {} pairs, median and band of all {}", kept,
                       trial.record.standing.pairs);
}

std::size_t deciding_counter(const ReportTrial& trial) {
    const auto& counters = trial.readings->counters;
    const auto found = std::ranges::find(counters, trial.record.standing.counter, &JudgedCounter::name);
    return found == counters.end() ? 0 : static_cast<std::size_t>(found - counters.begin());
}

std::vector<double> percents(const TrialReadings& readings, std::size_t counter) {
    std::vector<double> out;
    for (const auto& pair : readings.pairs)
        out.push_back(100 * std::expm1(difference_of(readings.counters[counter], pair[counter])));
    return out;
}

std::string summary(const ReportTrial& trial) {
    const VerdictRecord& r = trial.record;
    std::string out = fmt::format("<p>{}{}: {}", outcome_html(r),
                                  r.reason.empty() ? "" : fmt::format(" ({})", escape(r.reason)),
                                  escape(text_of(r.standing)));
    if (r.dropped > 0) out += fmt::format(", {} more dropped", r.dropped);
    out += of_which(trial);
    out +=
        fmt::format(".<br><span class=\"quiet\">Ended {}, trial {} of these arms", utc_text(r.time), r.trial);
    if (r.settings)
        out += fmt::format(", alpha {:.4g}, tolerance {:.4g}%, at most {} pairs", r.settings->alpha,
                           100 * r.settings->tolerance, r.settings->max_pairs);
    return out + ".</span></p>\n";
}

std::string pairs_table(const ReportTrial& trial, std::size_t counter, const std::vector<double>& percent,
                        const RunningEvidence& evidence) {
    if (percent.size() > kMostInTable) return "";
    std::string out =
        "<details><summary>The pairs in numbers</summary>\n<div class=\"wide\"><table>\n<thead><tr>"
        "<th class=\"num\">Pair</th><th class=\"num\">Baseline</th><th class=\"num\">Candidate</th>"
        "<th class=\"num\">Effect</th><th class=\"num\">E worse</th><th class=\"num\">E "
        "better</th></tr></thead>\n"
        "<tbody>\n";
    for (std::size_t i = 0; i < percent.size(); i++) {
        const Readings& r = trial.readings->pairs[i][counter];
        out += fmt::format(
            "<tr><td class=\"num\">{}</td><td class=\"num\">{:.6g}</td><td class=\"num\">{:.6g}</td>"
            "<td class=\"num\">{:+.2f}%</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>\n",
            i + 1, r.baseline, r.candidate, percent[i], evidence_text(evidence.log_regressed[i]),
            evidence_text(evidence.log_improved[i]));
    }
    return out + "</tbody></table></div></details>\n";
}

std::string figure(const std::string& caption, const std::string& svg) {
    return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", caption, svg);
}

std::string trial_html(const ReportTrial& trial, std::size_t number) {
    const VerdictRecord& r = trial.record;
    const std::size_t counter = deciding_counter(trial);
    const std::string name = trial.readings->counters[counter].name;
    const double tolerance = r.settings ? r.settings->tolerance : 0;
    const auto percent = percents(*trial.readings, counter);
    const auto evidence = running_evidence(*trial.readings, counter, tolerance);
    const auto enough = log_enough_of(trial);
    const std::string about =
        fmt::format("{} of {}, {} against {}", name, r.target, r.key.candidate, r.key.baseline);
    const std::string effects = effects_svg(percent, r.standing.effect, tolerance,
                                            fmt::format("Effect per pair on {}{}", about, of_which(trial)));
    const std::string lines =
        evidence_svg(evidence, enough,
                     fmt::format("Evidence by pair: {}{}. At the end {} for worse, {} for better", about,
                                 of_which(trial), evidence_text(evidence.log_regressed.back()),
                                 evidence_text(evidence.log_improved.back())));
    return fmt::format(
        "<article class=\"trial\" id=\"trial-{}\">\n<h3><code>{}</code>: {} against {}</h3>\n{}"
        "<div class=\"plots\">\n{}{}</div>\n{}{}</article>\n",
        number, escape(r.target), escape(r.key.candidate), escape(r.key.baseline), summary(trial),
        figure(fmt::format("What each pair says of the cost in {}: above zero is worse{}{}{}", escape(name),
                           r.standing.effect.interval ? "; the band holds the median (95%)" : "",
                           std::ranges::any_of(percent, [](double p) { return p > kMostPercent; })
                               ? fmt::format("; what is beyond +{:.0f}% is at the edge", kMostPercent)
                               : "",
                           of_which(trial)),
               effects),
        figure("Evidence so far that it is worse (solid) and better (dashed)" + of_which(trial), lines),
        others_html(trial, tolerance), pairs_table(trial, counter, percent, evidence));
}

std::string history_row(const ReportTrial& trial, std::size_t number) {
    const VerdictRecord& r = trial.record;
    std::string ended = utc_text(r.time);
    if (trial.readings) ended = fmt::format("<a href=\"#trial-{}\">{}</a>", number, ended);
    const auto cell = [](const char* label, const std::string& html, const char* kind = "") {
        return fmt::format("<td data-label=\"{}\"{}>{}</td>", label, kind, html);
    };
    return "<tr>" + cell("Ended", ended, " class=\"when\"") +
           cell("Target", fmt::format("<code>{}</code>", escape(r.target))) +
           cell("Tried", escape(r.key.candidate)) + cell("Against", escape(r.key.baseline)) +
           cell("Verdict", outcome_html(r)) +
           cell("Pairs",
                fmt::format("{}{}", r.standing.pairs, r.dropped > 0 ? fmt::format(" (+{})", r.dropped) : ""),
                " class=\"num\"") +
           cell("Effect", escape(effect_text(r.standing))) +
           cell("E worse", evidence_text(r.standing.log_regressed), " class=\"num\"") +
           cell("E better", evidence_text(r.standing.log_improved), " class=\"num\"") +
           cell("Reason", escape(r.reason)) + "</tr>\n";
}

}  // namespace

RunningEvidence running_evidence(const TrialReadings& readings, std::size_t counter, double tolerance) {
    RunningEvidence out;
    Evidence regressed;
    Evidence improved;
    for (const auto& pair : readings.pairs) {
        const double d = difference_of(readings.counters[counter], pair[counter]);
        regressed.add(d - std::log1p(tolerance));
        improved.add(-d);
        out.log_regressed.push_back(regressed.log());
        out.log_improved.push_back(improved.log());
    }
    return out;
}

std::string trials_html(const std::vector<ReportTrial>& trials) {
    std::string out;
    for (std::size_t i = trials.size(); i-- > 0;)
        if (trials[i].readings && !trials[i].readings->pairs.empty()) out += trial_html(trials[i], i + 1);
    if (out.empty())
        out = trials.empty() ? "<p>No trial has ended here yet.</p>\n"
                             : "<p>Of no trial that ended here are the pairs kept.</p>\n";
    return "<section id=\"trials\">\n<h2>Trials</h2>\n" + out + "</section>\n";
}

std::string history_html(const std::vector<ReportTrial>& trials) {
    std::string out = "<section id=\"history\">\n<h2>History</h2>\n";
    if (trials.empty()) return out + "<p>No trial has ended here yet.</p>\n</section>\n";
    out +=
        "<p>Effects are of the cost of the counter: above zero is worse. They describe the trial, which "
        "stopped when "
        "it had seen enough, and so tend to be overstated. Pairs in parentheses were dropped.</p>\n"
        "<div class=\"wide\"><table class=\"cards\">\n<thead><tr>";
    for (const char* name : {"Ended", "Target", "Tried", "Against", "Verdict"})
        out += fmt::format("<th scope=\"col\">{}</th>", name);
    out +=
        "<th scope=\"col\" class=\"num\">Pairs</th><th scope=\"col\">Effect</th><th scope=\"col\" "
        "class=\"num\">E "
        "worse</th><th scope=\"col\" class=\"num\">E better</th><th "
        "scope=\"col\">Reason</th></tr></thead>\n<tbody>\n";
    for (std::size_t i = trials.size(); i-- > 0;) out += history_row(trials[i], i + 1);
    return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace wq::ctl
