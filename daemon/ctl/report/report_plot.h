// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evidence/effect.h"

namespace wq::ctl {

// The effect of each pair of a trial as SVG: percent of the cost, above zero is worse. What is beyond
// kMostPercent is drawn at the edge, which says so. LABEL says it in words. TOLERANCE: a share, with a line
// of its own unless it is 0.
inline constexpr double kMostPercent = 1000;
std::string effects_svg(const std::vector<double>& percent, const Effect& effect, double tolerance,
                        const std::string& label);

// The evidence of a trial after each pair.
struct RunningEvidence {
    std::vector<double> log_regressed;  // natural logarithms
    std::vector<double> log_improved;
};

// The same as lines over a logarithmic axis. LOG_ENOUGH: the logarithm of the evidence that
// decides (m/alpha), where it is known. What is below 1/1000 is drawn there.
std::string evidence_svg(const RunningEvidence& evidence, std::optional<double> log_enough,
                         const std::string& label);

}  // namespace wq::ctl
