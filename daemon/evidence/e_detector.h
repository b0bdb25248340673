// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "evidence/e_process.h"

namespace wq {

// An e-detector watches for a change at an unknown time (Shin, Ramdas, Rinaldo, "E-detectors", 2022): a
// CUSUM of e-values, M_k <- max(1, M_k) * factor_k, averaged over the stakes. If the signs are random, its
// mean after n values is at most n. So an alarm at M >= c comes on average after c values or later.
class EDetector {
  public:
    struct State {
        StakeLogs logs{};    // ln M_k
        double squares = 0;  // exponentially weighted sum of x * x
        double weight = 0;   // sum of the weights
        friend bool operator==(const State&, const State&) = default;
    };

    EDetector() = default;
    explicit EDetector(const State& state) : state_(state) {}

    // X: finite. The scale is an exponentially weighted root mean square, so that a load whose noise grew
    // soon stops looking like harm.
    void add(double x);
    [[nodiscard]] double log() const { return log_mean(state_.logs); }
    [[nodiscard]] const State& state() const { return state_; }

  private:
    State state_;
};

}  // namespace wq
