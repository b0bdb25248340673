// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace wq {

// A simulated fleet. Each kind of machine has an effect of its candidate on each class, as a change of
// ln(cost): nothing for most, else a gain or harm with an exponential size. The canary hosts of a kind are
// busy with a part of the classes, and measure pairs; the noise of a window is AR(1). A guard has half of the
// effect, its own noise, and a tolerance of 1%.
struct FleetWorld {
    unsigned hosts = 100'000;
    unsigned kinds = 40;
    unsigned classes = 20;
    double canary = 0.01;
    double least_busy = 0.2;  // share of the hosts that are busy with a class: from this for the first to 1
    double gains = 0.2;       // share of the classes of a kind for which the candidate is a gain
    double harms = 0.1;       // or harm
    double mean_size = 0.01;  // of an effect
    double between = 0;       // deviation of a host's effect from that of its kind
    double noise = 0.03;      // deviation of a window
    double memory = 0.5;      // of the noise, from window to window
    double fdr = 0.05;
};

// What `fleet policy` makes of it.
struct FleetTally {
    unsigned use = 0;          // rules that name a scope
    unsigned use_wrong = 0;    // of them, where the candidate is no gain for the kind
    unsigned leave = 0;        // rules that say leave
    unsigned leave_wrong = 0;  // of them, where the candidate is no harm
    unsigned doubts = 0;
    double gain = 0;         // sum of all gains of kinds and classes
    double gain_found = 0;   // of those under a right rule
    double hosts_ruled = 0;  // canary hosts and classes under a rule that names a scope
    double hosts_worse = 0;  // of them, whose own effect is harm
    void add(const FleetTally& other);
    [[nodiscard]] double wrong_share() const;
    [[nodiscard]] double found_share() const { return gain == 0 ? 0 : gain_found / gain; }
};

// A tally for each of PAIRS (ascending): what is known when each host has so many pairs.
std::vector<FleetTally> simulate_fleet(const FleetWorld& world, const std::vector<unsigned>& pairs,
                                       std::uint64_t seed);

// Pairs of a host and class that is always busy: 64 at first, then one in 10 minutes.
inline constexpr unsigned kPairsOfHour = 69;
inline constexpr unsigned kPairsOfDay = 64 + 143;
inline constexpr unsigned kPairsOfWeek = 64 + 1007;

}  // namespace wq
