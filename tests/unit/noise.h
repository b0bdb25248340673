// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "evidence/comparison.h"
#include "policy/policy.h"

namespace wq {

// Random numbers that are the same with every compiler and library (SplitMix64).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits();
    double uniform();  // above 0, at most 1
    double normal();
    bool coin() { return (bits() >> 63U) != 0; }

  private:
    std::uint64_t state_;
};

// Noise returns the logarithm of the cost of the next window, without any change of ours. It is one random
// process over adjacent windows; NewNoise makes a new one for each comparison.
using Noise = std::function<double(Random&)>;
using NewNoise = std::function<Noise()>;

Noise independent(double deviation);
Noise autoregressive(double deviation, double memory);  // AR(1); DEVIATION is its long-run deviation
Noise drifting(double deviation, double per_window);
Noise shifting(double deviation, double by, double probability);  // the level changes by BY, up or down
Noise student2(double scale);                                     // t with 2 degrees of freedom

enum class Order { coin, baseline_first };

// A load with noise. The candidate multiplies its cost by `factor`.
struct Load {
    NewNoise noise;
    double factor = 1;
    Order order = Order::coin;
};

// The verdicts of many trials.
struct Tally {
    unsigned trials = 0;
    unsigned regressed = 0;
    unsigned improved = 0;
    std::vector<unsigned> pairs;  // of each trial with a verdict
    [[nodiscard]] double regressed_share() const { return static_cast<double>(regressed) / trials; }
    [[nodiscard]] double improved_share() const { return static_cast<double>(improved) / trials; }
    [[nodiscard]] double median_pairs() const;
};

Tally simulate(const JudgeSettings& settings, const Load& load, unsigned trials, std::uint64_t seed);

}  // namespace wq
