// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

namespace wq {

// How much the effects of hosts differ, more than the noise of each explains. Sums of hosts add up, in any
// order.
class Spread {
  public:
    // The mean difference of a host, and its weight: 1 / its variance. No host: weight 0.
    struct Host {
        double mean = 0;
        double weight = 0;
        friend bool operator==(const Host&, const Host&) = default;
    };
    struct State {
        std::uint64_t hosts = 0;
        double weight = 0;          // sum of the weights
        double weight_squares = 0;  // of weight^2
        double sum = 0;             // of weight * mean
        double squares = 0;         // of weight * mean^2
        Host least;                 // the host with the lowest mean
        Host most;                  // with the highest
        friend bool operator==(const State&, const State&) = default;
    };

    Spread() = default;
    explicit Spread(const State& state) : state_(state) {}
    // A host whose PAIRS differences have this SUM and these SQUARES. With fewer than kLeastPairs it is left
    // out.
    static Spread of_host(std::uint64_t pairs, double sum, double squares);

    void add(const Spread& other);
    // Standard deviation between hosts (DerSimonian and Laird, 1986), 0 where noise explains it all.
    [[nodiscard]] double deviation() const;
    // Whether hosts differ more than chance alone makes them differ in four of five cases: Cochran's Q
    // against its chi-squared distribution. Of 8 hosts or more, even without the most unusual one. False for
    // fewer than 3.
    [[nodiscard]] bool is_visible() const;
    [[nodiscard]] const State& state() const { return state_; }

    static constexpr std::uint64_t kLeastPairs = 8;
    // Differences between hosts that are smaller than this do not matter; a host's mean is never taken to be
    // known better.
    static constexpr double kLeastDeviation = 1e-3;
    // |mean| of a host. The square of a larger one would leave no digits for the other hosts.
    static constexpr double kMostMean = 10;
    friend bool operator==(const Spread&, const Spread&) = default;

  private:
    State state_;
};

}  // namespace wq
