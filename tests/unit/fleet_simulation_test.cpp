// SPDX-License-Identifier: LGPL-2.1-or-later
// A part of tests/bench/fleet_simulation.cpp, whose table is in docs/fleet.md. Seeds are fixed.
#include <gtest/gtest.h>

#include "fleet_world.h"

namespace wq {
namespace {

constexpr FleetWorld kSmall = {.hosts = 20'000, .kinds = 8, .classes = 10};

FleetTally simulated(const FleetWorld& world, unsigned pairs, unsigned fleets) {
    FleetTally out;
    for (unsigned seed = 1; seed <= fleets; seed++) out.add(simulate_fleet(world, {pairs}, seed)[0]);
    return out;
}

TEST(FleetSimulation, HostsThatAreAlikeFindMostOfTheGain) {
    const FleetTally tally = simulated(kSmall, kPairsOfHour, 4);
    EXPECT_GT(tally.use, 20U);
    EXPECT_GT(tally.leave, 5U);
    EXPECT_LE(tally.wrong_share(), kSmall.fdr);
    EXPECT_GT(tally.found_share(), 0.6);
}

TEST(FleetSimulation, WhereNothingHasAnEffectThereIsNoRule) {
    FleetWorld world = kSmall;
    world.gains = world.harms = 0;
    const FleetTally tally = simulated(world, kPairsOfHour, 4);
    EXPECT_EQ(tally.use + tally.leave, 0U);
}

TEST(FleetSimulation, WrongRulesStayUnderThePromiseWhereHostsDiffer) {
    FleetWorld world = kSmall;
    world.between = 0.005;
    const FleetTally tally = simulated(world, kPairsOfHour, 4);
    EXPECT_GT(tally.use, 10U);
    EXPECT_LE(tally.wrong_share(), world.fdr);
}

}  // namespace
}  // namespace wq
