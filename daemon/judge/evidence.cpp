// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wq {
namespace {

// ln(2 / (1 + exp(-z))), whichever way z is far from zero.
double log_factor(double z) {
    const double tail = std::log1p(std::exp(-std::abs(z)));
    return std::numbers::ln2 - tail + std::min(z, 0.0);
}

// The logarithm of the mean of what has these LOGS.
template <std::size_t N>
double log_mean(const std::array<double, N>& logs) {
    const double top = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double log : logs) sum += std::exp(log - top);
    return top + std::log(sum / N);
}

}  // namespace

void Evidence::add(double x) {
    squares_ += x * x;
    count_++;
    const double scale = std::sqrt(squares_ / count_);
    if (scale == 0) return;  // nothing but ties so far
    for (std::size_t i = 0; i < kStakes.size(); i++) logs_[i] += log_factor(kStakes[i] * x / scale);
    log_ = log_mean(logs_);
}

double evidence_of(double log) {
    return std::min(std::exp(log), std::numeric_limits<double>::max());
}

}  // namespace wq
