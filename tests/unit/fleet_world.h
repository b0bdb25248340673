// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace wq {

// A simulated fleet. For each kind of machine and each class, the candidate changes ln(cost) by an effect: 0
// for most, otherwise a gain or a harm of exponentially distributed size. The canary hosts of a kind are busy
// with a part of the classes and measure pairs; the noise of a window is AR(1). A guard has half of the
// effect, its own noise, and a tolerance of 1%.
struct FleetWorld {
    unsigned hosts = 100'000;
    unsigned kinds = 40;
    unsigned classes = 20;
    double canary = 0.01;
    double least_busy = 0.2;  // share of hosts busy with a class: this for the first class, 1 for the last
    double gains = 0.2;       // share of the classes of a kind for which the candidate is a gain
    double harms = 0.1;       // the same for harm
    double mean_size = 0.01;  // of an effect
    double between = 0;       // standard deviation of the effects of hosts of one kind
    double noise = 0.03;      // standard deviation of a window
    double memory = 0.5;      // autocorrelation of the noise of adjacent windows
    double fdr = 0.05;
};

// The result of `fleet policy` on such a fleet.
struct FleetTally {
    unsigned use = 0;          // rules that name a scope
    unsigned use_wrong = 0;    // those of them whose candidate is not a gain for the kind
    unsigned leave = 0;        // rules that say leave
    unsigned leave_wrong = 0;  // those of them whose candidate is not a harm
    double gain = 0;           // sum of all gains of kinds and classes
    double gain_found = 0;     // sum of the gains with a correct rule
    double hosts_ruled = 0;    // canary hosts and classes under a rule that names a scope
    double hosts_worse = 0;    // those of them whose own effect is a harm
    void add(const FleetTally& other);
    [[nodiscard]] double wrong_share() const;
    [[nodiscard]] double found_share() const { return gain == 0 ? 0 : gain_found / gain; }
};

// Returns a tally for each number in PAIRS (ascending): the result when each host has that many pairs.
std::vector<FleetTally> simulate_fleet(const FleetWorld& world, const std::vector<unsigned>& pairs,
                                       std::uint64_t seed);

// Pairs of a host with a class that is always busy: 64 at first, then one per 10 minutes.
inline constexpr unsigned kPairsOfHour = 69;
inline constexpr unsigned kPairsOfDay = 64 + 143;
inline constexpr unsigned kPairsOfWeek = 64 + 1007;

}  // namespace wq
