// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

namespace wq {

// How much more the effects of hosts differ than the noise of each host explains. Adding works in any order.
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
    // Standard deviation between hosts (DerSimonian and Laird, 1986), 0 if noise explains it all.
    [[nodiscard]] double deviation() const;
    // Whether hosts differ more than by chance alone in 80% of the cases: Cochran's Q against its chi-squared
    // distribution. With 8 hosts or more, this must hold without the most unusual host too. False for fewer
    // than 3 hosts.
    [[nodiscard]] bool is_visible() const;
    [[nodiscard]] const State& state() const { return state_; }

    static constexpr std::uint64_t kLeastPairs = 8;
    // Differences between hosts below this do not matter. So this is also the least standard deviation that
    // is assumed for a host's mean.
    static constexpr double kLeastDeviation = 1e-3;
    // Limit of |mean| of a host. In a sum with the square of a larger one, the digits of other hosts would be
    // lost.
    static constexpr double kMostMean = 10;
    friend bool operator==(const Spread&, const Spread&) = default;

  private:
    State state_;
};

}  // namespace wq
