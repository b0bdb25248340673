// SPDX-License-Identifier: LGPL-2.1-or-later
// The comparisons of a report, drawn and as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ctl/report/report.h"
#include "evidence/comparison.h"

namespace wq::ctl {
namespace {

constexpr std::size_t kMostDrawn = 10;      // trials; more are folded
constexpr std::size_t kMostInHistory = 20;  // rows; more are folded
constexpr double kMostOnScale = 50;         // percent

std::string evidence_text(double log) {
    return fmt::format("{:.3g}", evidence_of(log));
}

std::string figure(const std::string& caption, const std::string& svg, const std::vector<Mark>& marks,
                   const std::string& which) {
    return fmt::format("<figure><figcaption><strong>{}</strong>{}</figcaption>\n{}{}</figure>\n", caption,
                       which, svg, legend_html(marks));
}

// Percent at each end of a scale: a round number that fits all effects, or kMostOnScale.
double scale_of(const std::vector<VerdictRecord>& trials) {
    double most = 0;
    for (const VerdictRecord& r : trials) {
        const Effect& effect = r.standing.effect;
        most = std::max(most, std::abs(effect.percent));
        if (effect.interval)
            most = std::max({most, std::abs(effect.interval->low), std::abs(effect.interval->high)});
    }
    for (const double end : {2.0, 5.0, 10.0, 20.0})
        if (most <= end) return end;
    return kMostOnScale;
}

// A comparison with the differences of its pairs, by the counter that decided it.
class Drawn {
  public:
    explicit Drawn(const VerdictRecord& r) : r_(r), shown_(&r.differences.front()) {
        for (const Differences& each : r_.differences)
            if (each.counter == r_.standing.counter) shown_ = &each;
        for (const double d : shown_->last) percent_.push_back(100 * std::expm1(d));
        evidence_ = running_evidence(shown_->last, tolerance_);
        about_ = fmt::format("{} of {}, {} against {}", shown_->counter, r_.target, r_.key.candidate,
                             r_.key.reference);
        // If not all pairs were kept, say which pairs each figure uses.
        if (r_.standing.pairs > percent_.size())
            which_ = fmt::format("; only the last {} of {} pairs are drawn, and the evidence is theirs alone",
                                 percent_.size(), r_.standing.pairs);
    }

    [[nodiscard]] std::string html(std::size_t number) const {
        return fmt::format(
            "<article class=\"trial\" id=\"trial-{}\">\n<h3><code>{}</code>: {} against {}</h3>\n{}"
            "<div class=\"plots\">\n{}{}</div>\n{}</article>\n",
            number, escape(r_.target), escape(r_.key.candidate), escape(r_.key.reference), summary(),
            effects(), evidence(), pairs());
    }

  private:
    [[nodiscard]] std::string summary() const {
        return fmt::format(
            "<p>{}{}: {}{}.<br><span class=\"quiet\">{}{}, alpha {:.4g}, tolerance {:.4g}%.</span></p>\n",
            verdict_html(r_), r_.reason.empty() ? "" : fmt::format(" ({})", escape(r_.reason)),
            escape(text_of(r_.standing)), which_, utc_text(r_.time),
            r_.comparison > 1 ? fmt::format(", comparison {} of these arms", r_.comparison) : "",
            r_.settings.alpha, 100 * tolerance_);
    }

    [[nodiscard]] std::string effects() const {
        const Effect& effect = r_.standing.effect;
        std::vector<Mark> marks = {{"dots", "a pair: one window with each setting, in random order"},
                                   {"median", "median of the pairs"}};
        if (effect.interval) marks.push_back({"band", "95% interval of the median"});
        marks.push_back({"zero", "no difference"});
        if (tolerance_ > 0)
            marks.push_back(
                {"limit", fmt::format("tolerated by the policy: up to {:.4g}% worse", 100 * tolerance_)});
        std::string edge;
        if (std::ranges::any_of(percent_, [](double p) { return p > kMostPercent; }))
            edge = fmt::format("; values above {:.0f}% worse are drawn at the edge", kMostPercent);
        return figure("Effect of each pair",
                      effects_svg(percent_, effect, tolerance_, "effect on " + shown_->counter,
                                  fmt::format("Effect per pair on {}{}", about_, which_)),
                      marks, edge + which_);
    }

    // Shows the evidence that any decision needs; guards and further candidates increase it. Uses logarithms
    // like the judge, because m/alpha may be too large for a double.
    [[nodiscard]] std::string evidence() const {
        const double enough =
            std::log(static_cast<double>(r_.differences.size())) - std::log(r_.settings.alpha);
        const std::string value = short_evidence(enough);
        const std::vector<Mark> marks = {
            {"worse", "evidence that it is worse"},
            {"better", "evidence that it is better"},
            {"limit", fmt::format("below {} nothing is decided: if the change does nothing, a line gets "
                                  "there with probability 1/{} at most",
                                  value, value)}};
        const std::string label = fmt::format(
            "Evidence by pair: {}{}. At the end {} for worse, {} for better", about_, which_,
            evidence_text(evidence_.log_regressed.back()), evidence_text(evidence_.log_improved.back()));
        return figure("Evidence after each pair", evidence_svg(evidence_, enough, label), marks, which_);
    }

    [[nodiscard]] std::string pairs() const {
        std::vector<Cells> rows;
        for (std::size_t i = 0; i < percent_.size(); i++)
            rows.push_back({std::to_string(i + 1), effect_text(Effect{percent_[i], {}}),
                            evidence_text(evidence_.log_regressed[i]),
                            evidence_text(evidence_.log_improved[i])});
        return "<details class=\"pairs\"><summary>The pairs in numbers</summary>\n" +
               table({{"Pair", "num"}, {"Effect", "num"}, {"E worse", "num"}, {"E better", "num"}}, rows,
                     "") +
               "</details>\n";
    }

    const VerdictRecord& r_;
    const Differences* shown_;
    double tolerance_ = r_.settings.tolerance;
    std::vector<double> percent_;  // the effect of each pair
    RunningEvidence evidence_;
    std::string about_, which_;
};

}  // namespace

std::string verdict_html(const VerdictRecord& r) {
    if (!r.judged) return "<span class=\"cut-off\">cut off</span>";
    const char* mark = r.outcome == Judgement::regressed  ? "▲ "
                       : r.outcome == Judgement::improved ? "▼ "
                                                          : "";
    return fmt::format("<span class=\"{0}\">{1}{0}</span>", name_of(r.outcome), mark);
}

RunningEvidence running_evidence(const std::vector<double>& differences, double tolerance) {
    RunningEvidence out;
    EProcess worse;
    EProcess better;
    for (const double d : differences) {
        worse.add(d - std::log1p(tolerance));
        better.add(-d);
        out.log_regressed.push_back(worse.log());
        out.log_improved.push_back(better.log());
    }
    return out;
}

std::string trials_html(const std::vector<VerdictRecord>& trials) {
    std::string out;
    std::string older;
    std::size_t drawn = 0;
    for (std::size_t i = trials.size(); i-- > 0;) {
        if (trials[i].differences.empty()) continue;
        (drawn++ < kMostDrawn ? out : older) += Drawn(trials[i]).html(i + 1);
    }
    if (!older.empty()) out += folded(plural(drawn - kMostDrawn, "older comparison"), older);
    if (drawn > 0)
        out =
            "<p>Two scopes of one target, compared under its own load, in pairs of time windows, one window "
            "with each scope. The last verdict comes first.</p>\n" +
            out;
    else
        out = trials.empty() ? "<p>No comparison has a verdict here yet.</p>\n"
                             : "<p>The pairs behind the verdicts here were not kept.</p>\n";
    return section("trials", "Comparisons", out);
}

std::string history_html(const std::vector<VerdictRecord>& trials, const std::string& kernel) {
    if (trials.empty()) return "";
    const double end = scale_of(trials);
    std::vector<Cells> rows;
    for (std::size_t i = trials.size(); i-- > 0;) {
        const VerdictRecord& r = trials[i];
        std::string ended = utc_text(r.time);
        if (!r.differences.empty()) ended = fmt::format("<a href=\"#trial-{}\">{}</a>", i + 1, ended);
        const bool here = kernel.empty() || r.key.kernel == kernel;
        const std::string effect = effect_text(r.standing);
        rows.push_back(
            {ended, code(r.target),
             escape(r.key.candidate + " against " + r.key.reference) +
                 quiet(here ? "" : "with kernel " + r.key.kernel.substr(0, r.key.kernel.find(' '))),
             verdict_html(r) + quiet(r.reason), escape(effect) + quiet(plural(r.standing.pairs, "pair")),
             r.standing.pairs > 0 ? effect_bar_svg(r.standing.effect, end, effect) : "",
             evidence_text(r.standing.log_regressed), evidence_text(r.standing.log_improved)});
    }
    return section(
        "history", "History",
        "<p>Every verdict that is on record. Left of the upright line is better. Dot: the median of the "
        "pairs. Bar: its 95% interval. Arrow: beyond the scale. E is the evidence (an e-value). The effect "
        "of a comparison that ended early tends to be overstated.</p>\n" +
            folded_table({{"Time", "when"},
                          {"Target"},
                          {"Arms"},
                          {"Verdict"},
                          {"Effect"},
                          {fmt::format("{0:.0f}% better … {0:.0f}% worse", end), "bar"},
                          {"E worse", "num"},
                          {"E better", "num"}},
                         rows, kMostInHistory, "older verdict"));
}

}  // namespace wq::ctl
