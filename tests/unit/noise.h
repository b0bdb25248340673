// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>

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

}  // namespace wq
