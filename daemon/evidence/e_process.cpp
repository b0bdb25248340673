// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/e_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace wq {
namespace {

constexpr std::size_t kFirstLarge = 2;  // of kStakes
static_assert(kStakes[kFirstLarge] == 0.5);

}  // namespace

double log_factor(double z) {
    // Only calls exp() with a negative number or zero, so it cannot overflow.
    return std::numbers::ln2 - std::log1p(std::exp(-std::abs(z))) + std::min(z, 0.0);
}

void EProcess::add(double x) {
    state_.squares += x * x;
    state_.count++;
    const double scale = std::sqrt(state_.squares / static_cast<double>(state_.count));
    if (scale == 0) return;
    for (std::size_t i = 0; i < kStakes.size(); i++)
        state_.logs[i] = std::clamp(state_.logs[i] + log_factor(kStakes[i] * x / scale), -kMostLog, kMostLog);
}

double EProcess::log_of_large_stakes() const {
    std::array<double, kStakes.size() - kFirstLarge> logs{};
    std::copy(state_.logs.begin() + kFirstLarge, state_.logs.end(), logs.begin());
    return log_mean(logs);
}

namespace {

constexpr double kMemory = 0.98;  // weight of the past: its half-life is 34 values

}  // namespace

void EDetector::add(double x) {
    state_.squares = kMemory * state_.squares + x * x;
    state_.weight = kMemory * state_.weight + 1;
    const double scale = std::sqrt(state_.squares / state_.weight);
    for (std::size_t i = 0; i < kStakes.size(); i++) {
        const double factor = scale == 0 ? 0 : log_factor(kStakes[i] * x / scale);
        state_.logs[i] = std::max(0.0, state_.logs[i]) + factor;
    }
}

}  // namespace wq
