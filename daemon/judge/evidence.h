// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>

namespace wq {

// A gambler's capital, starting at 1, who bets before each value that it will be above zero. Where the signs
// are fair coins it stays a fair game, so capital is evidence: it reaches c with probability 1/c at most.
class Evidence {
  public:
    void add(double x);

    // The natural logarithm of the capital, which itself would overflow (and underflow) a double.
    [[nodiscard]] double log() const { return log_; }

  private:
    // Stakes, in scales of the values so far; the capital starts in equal parts on each.
    static constexpr std::array kStakes{0.5, 1.0, 2.0, 4.0, 8.0};

    std::array<double, kStakes.size()> logs_{};
    double log_ = 0;  // of their mean
    double squares_ = 0;
    unsigned count_ = 0;
};

// E from its logarithm: the largest double where E is larger.
double evidence_of(double log);

}  // namespace wq
