// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wq {

// Bets on "the next value is above zero", in units of the values' own scale. Which one wins most depends on
// how an effect compares with the noise, which nobody knows beforehand; so the money is spread over all.
inline constexpr std::array<double, 7> kStakes{0.125, 0.25, 0.5, 1, 2, 4, 8};
using StakeLogs = std::array<double, kStakes.size()>;  // ln of an e-value per stake

// ln(2 / (1 + exp(-z))): what a stake's e-value is multiplied by, z = stake * x / scale. At most ln 2.
double log_factor(double z);

// ln of the mean of the e-values that have these LOGS.
double log_mean(const StakeLogs& logs);

// An e-process: a product of factors whose mean is 1 wherever the sign of each value is a fair coin, given
// its size and all that came before. It starts at 1 and ever reaches c with probability 1/c at most (Ville),
// so it may be looked at after every value. The essay in evidence/comparison.cpp has the argument.
class EProcess {
  public:
    // All that goes on when the process does: what a file keeps.
    struct State {
        StakeLogs logs{};
        double squares = 0;  // sum of x * x
        std::uint64_t count = 0;
        friend bool operator==(const State&, const State&) = default;
    };

    EProcess() = default;
    explicit EProcess(const State& state) : state_(state) {}

    // X: finite. Zeros change no e-value.
    void add(double x);
    // ln of the e-value: the mean over the stakes.
    [[nodiscard]] double log() const { return log_mean(state_.logs); }
    [[nodiscard]] const State& state() const { return state_; }

  private:
    State state_;
};

}  // namespace wq
