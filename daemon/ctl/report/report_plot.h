// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

#include "evidence/comparison.h"

namespace wq::ctl {

// The effect of each pair as SVG: percent of the cost, above zero is worse. Values above
// kMostPercent are drawn at the edge with a note. TITLE is for the vertical axis. LABEL describes the
// drawing as text. TOLERANCE: a fraction; drawn as a line unless it is 0.
inline constexpr double kMostPercent = 1000;
std::string effects_svg(const std::vector<double>& percent, const Effect& effect, double tolerance,
                        const std::string& title, const std::string& label);

// The evidence after each pair.
struct RunningEvidence {
    std::vector<double> log_regressed;  // natural logarithms
    std::vector<double> log_improved;
};

// Draws the evidence as lines over a logarithmic axis. LOG_ENOUGH: the logarithm of the evidence for a
// decision (m/alpha), if known. Values below 1/1000 are drawn at 1/1000.
std::string evidence_svg(const RunningEvidence& evidence, double log_enough, const std::string& label);

// An effect as a dot (the median) and a bar (the interval), with a vertical line at zero, on a scale of
// -END..END percent. An effect outside of the scale is drawn as an arrow.
std::string effect_bar_svg(const Effect& effect, double end, const std::string& label);

// A legend below a drawing with the meaning of each mark. MARK is the class of the mark in the drawing.
struct Mark {
    const char* mark;
    std::string text;
};
std::string legend_html(const std::vector<Mark>& marks);

// Evidence from its natural logarithm: "80", "1e323".
std::string short_evidence(double log);

}  // namespace wq::ctl
