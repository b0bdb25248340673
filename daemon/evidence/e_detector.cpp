// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/e_detector.h"

#include <algorithm>
#include <cmath>

namespace wq {
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
