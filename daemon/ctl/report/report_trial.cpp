// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/report/report_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "ctl/report/report_page.h"
#include "ctl/topology_command.h"
#include "evidence/e_process.h"
#include "evidence/verdicts.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostInTable = 64;    // pairs
constexpr std::size_t kMostDrawn = 10;      // trials; more are folded
constexpr std::size_t kMostInHistory = 20;  // rows; more are folded

std::string evidence_text(double log) {
    return fmt::format("{:.3g}", evidence_of(log));
}

// The evidence that any decision needs; guards and further candidates increase it. Uses logarithms like the
// judge, because m/alpha may be too large for a double.
double log_enough_of(const ReportedComparison& trial) {
    return std::log(static_cast<double>(trial.readings->counters.size())) -
           std::log(trial.record.settings.alpha);
}

// Shows the highest evidence for worse of all counters. The drawing shows only one counter, so without this
// the dashed line could seem to decide alone.
std::string others_html(const ReportedComparison& trial, double tolerance) {
    const ComparisonReadings& readings = *trial.readings;
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
        "<p class=\"quiet\">The verdict &quot;improved&quot; requires that no counter&#39;s evidence for "
        "&quot;worse&quot; is above 1. Highest: {} {}.</p>\n",
        escape(readings.counters[highest].name), evidence_text(most));
}

// If not all pairs were kept, says which pairs each figure uses.
std::string of_which(const ReportedComparison& trial) {
    const std::size_t kept = trial.readings->pairs.size();
    if (trial.record.standing.pairs <= kept) return "";
    return fmt::format(
        "; the dots and the evidence use the first {} of {} pairs, the median and the band only the last "
        "ones",
        kept, trial.record.standing.pairs);
}

std::size_t deciding_counter(const ReportedComparison& trial) {
    const auto& counters = trial.readings->counters;
    const auto found = std::ranges::find(counters, trial.record.standing.counter, &ComparedCounter::name);
    return found == counters.end() ? 0 : static_cast<std::size_t>(found - counters.begin());
}

std::vector<double> percents(const ComparisonReadings& readings, std::size_t counter) {
    std::vector<double> out;
    for (const auto& pair : readings.pairs)
        out.push_back(100 * std::expm1(log_ratio(readings.counters[counter], pair[counter])));
    return out;
}

std::string summary(const ReportedComparison& trial) {
    const VerdictRecord& r = trial.record;
    std::string out = fmt::format("<p>{}{}: {}", verdict_html(r),
                                  r.reason.empty() ? "" : fmt::format(" ({})", escape(r.reason)),
                                  escape(text_of(r.standing)));
    out += of_which(trial);
    out += fmt::format(".<br><span class=\"quiet\">{}", utc_text(r.time));
    if (r.comparison > 1) out += fmt::format(", comparison {} of these arms", r.comparison);
    return fmt::format("{}, alpha {:.4g}, tolerance {:.4g}%.</span></p>\n", out, r.settings.alpha,
                       100 * r.settings.tolerance);
}

std::string pairs_table(const ReportedComparison& trial, std::size_t counter,
                        const std::vector<double>& percent, const RunningEvidence& evidence) {
    if (percent.size() > kMostInTable) return "";
    std::string out =
        "<details class=\"pairs\"><summary>The pairs in numbers</summary>\n<div "
        "class=\"wide\"><table>\n<thead><tr>"
        "<th class=\"num\">Pair</th><th class=\"num\">Reference</th><th class=\"num\">Candidate</th>"
        "<th class=\"num\">Effect</th><th class=\"num\">E worse</th><th class=\"num\">E "
        "better</th></tr></thead>\n"
        "<tbody>\n";
    for (std::size_t i = 0; i < percent.size(); i++) {
        const PairValues& r = trial.readings->pairs[i][counter];
        out += fmt::format(
            "<tr><td class=\"num\">{}</td><td class=\"num\">{:.6g}</td><td class=\"num\">{:.6g}</td>"
            "<td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>\n",
            i + 1, r.reference, r.candidate, effect_text(Effect{percent[i], {}}),
            evidence_text(evidence.log_regressed[i]), evidence_text(evidence.log_improved[i]));
    }
    return out + "</tbody></table></div></details>\n";
}

std::string figure(const std::string& caption, const std::string& svg, const std::vector<Mark>& marks,
                   const std::string& which) {
    return fmt::format("<figure><figcaption><strong>{}</strong>{}</figcaption>\n{}{}</figure>\n", caption,
                       which, svg, legend_html(marks));
}

std::string effects_figure(const ReportedComparison& trial, const std::string& counter,
                           const std::string& about, const std::vector<double>& percent, double tolerance) {
    const VerdictRecord& r = trial.record;
    const std::string which = of_which(trial);
    const std::string svg = effects_svg(percent, r.standing.effect, tolerance, "effect on " + counter,
                                        fmt::format("Effect per pair on {}{}", about, which));
    std::vector<Mark> marks = {{"dots", "a pair: one window with each setting, in random order"},
                               {"median", "median of the pairs"}};
    if (r.standing.effect.interval) marks.push_back({"band", "95% interval of the median"});
    marks.push_back({"zero", "no difference"});
    if (tolerance > 0)
        marks.push_back(
            {"limit", fmt::format("tolerated by the policy: up to {:.4g}% worse", 100 * tolerance)});
    std::string edge;
    if (std::ranges::any_of(percent, [](double p) { return p > kMostPercent; }))
        edge = fmt::format("; values above {:.0f}% worse are drawn at the edge", kMostPercent);
    return figure("Effect of each pair", svg, marks, edge + which);
}

std::string evidence_figure(const ReportedComparison& trial, const std::string& about,
                            const RunningEvidence& evidence) {
    const std::string which = of_which(trial);
    const double enough = log_enough_of(trial);
    const std::string svg =
        evidence_svg(evidence, enough,
                     fmt::format("Evidence by pair: {}{}. At the end {} for worse, {} for better", about,
                                 which, evidence_text(evidence.log_regressed.back()),
                                 evidence_text(evidence.log_improved.back())));
    const std::string value = short_evidence(enough);
    const std::vector<Mark> marks = {
        {"worse", "evidence that it is worse"},
        {"better", "evidence that it is better"},
        {"limit", fmt::format("below {} nothing is decided: if the change does nothing, a line gets there "
                              "with probability 1/{} at most",
                              value, value)}};
    return figure("Evidence after each pair", svg, marks, which);
}

std::string trial_html(const ReportedComparison& trial, std::size_t number) {
    const VerdictRecord& r = trial.record;
    const std::size_t counter = deciding_counter(trial);
    const std::string name = trial.readings->counters[counter].name;
    const double tolerance = r.settings.tolerance;
    const auto percent = percents(*trial.readings, counter);
    const auto evidence = running_evidence(*trial.readings, counter, tolerance);
    const std::string about =
        fmt::format("{} of {}, {} against {}", name, r.target, r.key.candidate, r.key.reference);
    return fmt::format(
        "<article class=\"trial\" id=\"trial-{}\">\n<h3><code>{}</code>: {} against {}</h3>\n{}"
        "<div class=\"plots\">\n{}{}</div>\n{}{}</article>\n",
        number, escape(r.target), escape(r.key.candidate), escape(r.key.reference), summary(trial),
        effects_figure(trial, name, about, percent, tolerance), evidence_figure(trial, about, evidence),
        others_html(trial, tolerance), pairs_table(trial, counter, percent, evidence));
}

std::string history_row(const ReportedComparison& trial, std::size_t number) {
    const VerdictRecord& r = trial.record;
    std::string ended = utc_text(r.time);
    if (trial.readings) ended = fmt::format("<a href=\"#trial-{}\">{}</a>", number, ended);
    return "<tr>" + cell("Time", ended, "when") +
           cell("Target", fmt::format("<code>{}</code>", escape(r.target))) +
           cell("Tried", escape(r.key.candidate)) + cell("Against", escape(r.key.reference)) +
           cell("Verdict", verdict_html(r)) + cell("Pairs", std::to_string(r.standing.pairs), "num") +
           cell("Effect", escape(effect_text(r.standing))) +
           cell("E worse", evidence_text(r.standing.log_regressed), "num") +
           cell("E better", evidence_text(r.standing.log_improved), "num") +
           cell("Reason", escape(r.reason)) + "</tr>\n";
}

}  // namespace

std::string verdict_html(const VerdictRecord& r) {
    if (!r.judged) return "<span class=\"cut-off\">cut off</span>";
    const char* mark = r.outcome == Judgement::regressed  ? "▲ "
                       : r.outcome == Judgement::improved ? "▼ "
                                                          : "";
    return fmt::format("<span class=\"{0}\">{1}{0}</span>", name_of(r.outcome), mark);
}

RunningEvidence running_evidence(const ComparisonReadings& readings, std::size_t counter, double tolerance) {
    RunningEvidence out;
    EProcess worse;
    EProcess better;
    for (const auto& pair : readings.pairs) {
        const double d = log_ratio(readings.counters[counter], pair[counter]);
        worse.add(d - std::log1p(tolerance));
        better.add(-d);
        out.log_regressed.push_back(worse.log());
        out.log_improved.push_back(better.log());
    }
    return out;
}

std::string trials_html(const std::vector<ReportedComparison>& trials) {
    std::string out;
    std::string older;
    std::size_t drawn = 0;
    for (std::size_t i = trials.size(); i-- > 0;) {
        if (!trials[i].readings || trials[i].readings->pairs.empty()) continue;
        (drawn++ < kMostDrawn ? out : older) += trial_html(trials[i], i + 1);
    }
    if (!older.empty()) out += folded(plural(drawn - kMostDrawn, "older comparison"), older);
    if (out.empty())
        out = trials.empty() ? "<p>No comparison has a verdict here yet.</p>\n"
                             : "<p>The pairs behind the verdicts here were not kept.</p>\n";
    else
        out =
            "<p>Two scopes of one target, compared under its own load, in pairs of time windows, one window "
            "with each scope. The last verdict comes first.</p>\n" +
            out;
    return "<section id=\"trials\">\n<h2>Comparisons</h2>\n" + out + "</section>\n";
}

std::string history_html(const std::vector<ReportedComparison>& trials) {
    if (trials.empty()) return "";
    std::string out =
        "<section id=\"history\">\n<h2>History</h2>\n<p>Every verdict that is on record. E is the "
        "evidence (an e-value).</p>\n";
    const std::vector<Heading> headings = {{"Time"},           {"Target"},      {"Tried"},  {"Against"},
                                           {"Verdict"},        {"Pairs", true}, {"Effect"}, {"E worse", true},
                                           {"E better", true}, {"Reason"}};
    std::string rows;
    std::string older;
    for (std::size_t i = trials.size(); i-- > 0;)
        (trials.size() - i <= kMostInHistory ? rows : older) += history_row(trials[i], i + 1);
    out += table(headings, rows);
    if (!older.empty())
        out += folded(plural(trials.size() - kMostInHistory, "older verdict"), table(headings, older));
    return out + "</section>\n";
}

}  // namespace wq::ctl
