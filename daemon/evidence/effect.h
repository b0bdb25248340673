// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <vector>

namespace wq {

// What a change did to a cost, in percent of it; above zero is worse. Descriptive: the trial stopped on these
// very data, so that the effect of one that reached a verdict early is overstated.
struct Effect {
    struct Interval {
        double low = 0;
        double high = 0;
    };
    double percent = 0;  // the median
    std::optional<Interval>
        interval;  // 95%, from the Walsh averages; none under kLeastForInterval differences
};

// Below this no pair of Walsh averages encloses the median of symmetric differences 95% of the time.
inline constexpr std::size_t kLeastForInterval = 6;

// Of the differences ln(candidate) - ln(baseline) of the pairs; none: no effect.
Effect effect_of(std::vector<double> differences);

}  // namespace wq
