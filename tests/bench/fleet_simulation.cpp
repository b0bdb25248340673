// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the table in docs/fleet.md: what `fleet policy` finds in simulated fleets of 100,000 hosts
// (tests/unit/fleet_world.h). Usage: fleet_simulation [FLEETS]
#include <fmt/format.h>

#include <cstdlib>

#include "fleet_world.h"

namespace {

void print_rows(const char* name, const wq::FleetWorld& world, unsigned fleets) {
    constexpr const char* kTimes[] = {"an hour", "a day", "a week"};
    std::vector<wq::FleetTally> sums(std::size(kTimes));
    for (unsigned seed = 1; seed <= fleets; seed++) {
        const auto one = simulate_fleet(world, {wq::kPairsOfHour, wq::kPairsOfDay, wq::kPairsOfWeek}, seed);
        for (std::size_t i = 0; i < sums.size(); i++) sums[i].add(one[i]);
    }
    for (std::size_t i = 0; i < sums.size(); i++) {
        const wq::FleetTally& t = sums[i];
        fmt::print("| {} | {} | {:.1f} | {} of {} | {:.1f} | {} of {} | {:.2f}% | {:.0f}% | {:.1f}% |\n",
                   name, kTimes[i], 1.0 * t.use / fleets, t.use_wrong, t.use, 1.0 * t.leave / fleets,
                   t.leave_wrong, t.leave, 100 * t.wrong_share(), 100 * t.found_share(),
                   t.hosts_ruled == 0 ? 0 : 100 * t.hosts_worse / t.hosts_ruled);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto fleets = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 20;
    fmt::print(
        "| fleet | after | rules for a scope | of them wrong | rules `leave` | of them wrong | wrong of all "
        "| gain found "
        "| hosts under a rule that lose |\n|---|---|---|---|---|---|---|---|---|\n");
    print_rows("alike", {}, fleets);
    print_rows("no effect at all", {.gains = 0, .harms = 0}, fleets);
    print_rows("hosts differ by 0.5%", {.between = 0.005}, fleets);
    print_rows("hosts differ by 2%", {.between = 0.02}, fleets);
    print_rows("hosts differ by 2%, means are 0", {.gains = 0, .harms = 0, .between = 0.02}, fleets);
}
