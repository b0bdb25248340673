// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "evidence/e_process.h"

namespace wq {

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
