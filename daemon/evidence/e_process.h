// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace wq {

// Stakes for "the next value is above zero", in units of the values' own scale. The best stake depends on
// the ratio of effect to noise, which is not known beforehand, so the e-value is the mean over all stakes.
inline constexpr std::array<double, 7> kStakes{0.125, 0.25, 0.5, 1, 2, 4, 8};
using StakeLogs = std::array<double, kStakes.size()>;  // ln of an e-value per stake

// |ln E| of a stake is at most this: the lower bound is reached after 14,000 pairs of one sign or more. What
// the bound adds to the probability of a false verdict is too small for a double.
inline constexpr double kMostLog = 1e5;

// The factor for a stake's e-value, ln(2 / (1 + exp(-z))), with z = stake * x / scale. At most ln 2.
double log_factor(double z);

// ln of the mean of the e-values whose logarithms are LOGS.
template <std::size_t N>
double log_mean(const std::array<double, N>& logs) {
    const double top = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double log : logs) sum += std::exp(log - top);
    return top + std::log(sum / N);
}

// An e-process: a product of factors. If the sign of each value is random, given its size and all earlier
// values, each factor has mean 1. The product starts at 1, and the probability that it ever reaches c is at
// most 1/c (Ville). So it may be checked after every value. evidence/comparison.cpp explains why.
class EProcess {
  public:
    // The complete state, for storing it in a file and continuing later.
    struct State {
        StakeLogs logs{};
        double squares = 0;  // sum of x * x
        std::uint64_t count = 0;
        friend bool operator==(const State&, const State&) = default;
    };

    EProcess() = default;
    explicit EProcess(const State& state) : state_(state) {}

    // X: finite. A zero does not change the e-value.
    void add(double x);
    // ln of the e-value, the mean over the stakes.
    [[nodiscard]] double log() const { return log_mean(state_.logs); }
    // The same for the stakes from 1/2 on only: fewer values of one sign make it large.
    [[nodiscard]] double log_of_large_stakes() const;
    [[nodiscard]] const State& state() const { return state_; }

  private:
    State state_;
};

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
