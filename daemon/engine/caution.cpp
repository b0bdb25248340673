// SPDX-License-Identifier: LGPL-2.1-or-later
#include "engine/caution.h"

#include <algorithm>
#include <cmath>

namespace wq {
namespace {

constexpr double kLeastExpected = 30;  // items; with fewer, a third can be chance
constexpr double kTimes = 3;
constexpr double kDeviations = 4;  // standard deviations of a pair's difference that noise explains

}  // namespace

bool starves(double completed, double expected) {
    return expected >= kLeastExpected && completed * kTimes < expected;
}

bool is_beyond_noise(const std::deque<double>& before, double d) {
    if (before.size() < kLeastForNoise) return false;
    const auto n = static_cast<double>(before.size());
    double mean = 0;
    for (const double each : before) mean += each / n;
    double squares = 0;
    for (const double each : before) squares += (each - mean) * (each - mean);
    // A deviation computed from few differences is itself uncertain: with four of them, by a factor of two.
    const double deviation = std::sqrt(squares / (n - 1)) * (1 + 4 / n);
    return d > std::log(kTimes) + kDeviations * deviation;
}

void LostTime::add(std::int64_t day, double d, double seconds) {
    if (day != day_) lost_ = 0;
    day_ = day;
    lost_ += d > 0 ? seconds * -std::expm1(-d) : 0;
}

}  // namespace wq
