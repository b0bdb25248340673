// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wq {

// The change of a cost in percent; positive is worse. Only descriptive: the comparison stopped because of
// the same data, so the effect of an early verdict is overestimated.
struct Effect {
    struct Interval {
        double low = 0;
        double high = 0;
    };
    double percent = 0;  // the median
    std::optional<Interval>
        interval;  // 95%, from the Walsh averages; empty for fewer than kLeastForInterval differences
};

// With fewer differences, no pair of Walsh averages encloses the median of symmetric differences with 95%
// probability.
inline constexpr std::size_t kLeastForInterval = 6;

// DIFFERENCES: ln(candidate) - ln(reference) of the pairs. If empty, there is no effect.
Effect effect_of(std::vector<double> differences);

// For people: "31% better (24 to 37)", "2% worse (1% better to 5% worse)" or "no difference", with two
// significant digits. Whether higher or lower values of the counter are better: a lower cost is better.
std::string effect_text(const Effect& effect);

}  // namespace wq
