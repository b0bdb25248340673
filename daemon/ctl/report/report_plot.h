// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/effect.h"

namespace wq::ctl {

// The effect of each pair of a trial as SVG: percent of the cost, above zero is worse. What is beyond
// kMostPercent is drawn at the edge, which says so. TITLE: of the vertical axis. LABEL says it all in words.
// TOLERANCE: a share, with a line of its own unless it is 0.
inline constexpr double kMostPercent = 1000;
std::string effects_svg(const std::vector<double>& percent, const Effect& effect, double tolerance,
                        const std::string& title, const std::string& label);

// The evidence of a trial after each pair.
struct RunningEvidence {
    std::vector<double> log_regressed;  // natural logarithms
    std::vector<double> log_improved;
};

// The same as lines over a logarithmic axis. LOG_ENOUGH: the logarithm of the evidence that
// decides (m/alpha), where it is known. What is below 1/1000 is drawn there.
std::string evidence_svg(const RunningEvidence& evidence, std::optional<double> log_enough,
                         const std::string& label);

// An effect as a dot (the median) and a bar (the interval) beside an upright line at zero, over a scale of
// -END..END percent. What is beyond is an arrow.
std::string effect_bar_svg(const Effect& effect, double end, const std::string& label);

// A legend below a drawing: what each mark means. MARK is the class of the mark in the drawing.
struct Mark {
    const char* mark;
    std::string text;
};
std::string legend_html(const std::vector<Mark>& marks);

// "80", "1e323": evidence, from its natural logarithm.
std::string short_evidence(double log);

}  // namespace wq::ctl
