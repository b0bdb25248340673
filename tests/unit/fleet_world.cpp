// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fleet_world.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "ctl/fleet/fleet.h"
#include "noise.h"

namespace wq {
namespace {

constexpr double kGuardTolerance = 0.01;
constexpr double kMostSize = 0.1;

// The evidence of one counter on one host. Grows with each pair.
class Measured {
  public:
    Measured(const FleetWorld& world, double effect, double tolerance)
        : world_(world), effect_(effect), tolerance_(tolerance) {}

    void add_pair(Random& random) {
        double first = window(random);
        double second = window(random);
        if (random.coin()) std::swap(first, second);
        const double d = first - second + effect_;
        better_.add(-d);
        worse_.add(d - std::log1p(tolerance_));
        sum_ += d;
    }
    [[nodiscard]] HostEvidence evidence() const {
        return {0, better_.count, better_.logs, worse_.logs, sum_, better_.squares};
    }

  private:
    double window(Random& random) {
        const double step = world_.noise * std::sqrt(1 - world_.memory * world_.memory);
        return level_ = world_.memory * level_ + step * random.normal();
    }

    const FleetWorld& world_;
    double effect_;
    double tolerance_;
    double level_ = 0;
    double sum_ = 0;
    EProcess better_;
    EProcess worse_;
};

FleetKey key_of(unsigned kind, unsigned target, bool guard) {
    FleetKey key;
    key.machine = {"x86_64", "vendor", "model " + std::to_string(kind), 1, 64, 8};
    key.kernel = "6.12";
    key.kind = "class" + std::to_string(target) + "-";
    key.reference = "cache";
    key.reference_origin = "kernel";
    key.candidate = "smt";
    key.counter = guard ? "throughput" : "latency";
    key.guard = guard;
    return key;
}

double draw_effect(const FleetWorld& world, Random& random) {
    const double which = random.uniform();
    const double size = std::min(kMostSize, -world.mean_size * std::log(random.uniform()));
    if (which < world.gains) return -size;
    return which < world.gains + world.harms ? size : 0;
}

double busy_with(const FleetWorld& world, unsigned target) {
    return world.least_busy + (1 - world.least_busy) * target / std::max(1U, world.classes - 1);
}

struct Cell {
    double effect = 0;  // of the kind of machine
    std::vector<double> hosts;
    std::vector<Pooled> latency;  // by index in PAIRS
    std::vector<Pooled> guard;
};

Cell measure(const FleetWorld& world, double busy, double effect, const std::vector<unsigned>& pairs,
             Random& random) {
    const auto canaries = static_cast<unsigned>(std::lround(world.hosts * world.canary / world.kinds));
    Cell cell{effect, {}, std::vector<Pooled>(pairs.size()), std::vector<Pooled>(pairs.size())};
    for (unsigned host = 0; host < canaries; host++) {
        if (random.uniform() > busy) continue;
        cell.hosts.push_back(effect + world.between * random.normal());
        Measured latency(world, cell.hosts.back(), 0);
        Measured guard(world, cell.hosts.back() / 2, kGuardTolerance);
        unsigned done = 0;
        for (std::size_t i = 0; i < pairs.size(); i++) {
            for (; done < pairs[i]; done++) {
                latency.add_pair(random);
                guard.add_pair(random);
            }
            cell.latency[i].add(pooled(latency.evidence(), 0));
            cell.guard[i].add(pooled(guard.evidence(), kGuardTolerance));
        }
    }
    return cell;
}

using Cells = std::map<std::pair<std::string, std::string>, Cell>;  // by model and class

void count(const FleetRule& rule, const Cell& cell, FleetTally& out) {
    if (rule.leave) {
        out.leave++;
        out.leave_wrong += cell.effect <= 0;
        return;
    }
    out.use++;
    out.use_wrong += cell.effect >= 0;
    out.gain_found += std::max(0.0, -cell.effect);
    out.hosts_ruled += static_cast<double>(cell.hosts.size());
    out.hosts_worse += static_cast<double>(std::ranges::count_if(cell.hosts, [](double e) { return e > 0; }));
}

FleetTally tally(const FleetWorld& world, const Cells& cells, const std::vector<FleetEntry>& entries) {
    FleetTally out;
    for (const auto& [name, cell] : cells) out.gain += std::max(0.0, -cell.effect);
    const FleetRules found = promoted(entries, world.fdr);
    for (const FleetRule& rule : found.rules)
        count(rule, cells.at({rule.key().machine.model, rule.key().kind}), out);
    return out;
}

}  // namespace

void FleetTally::add(const FleetTally& o) {
    use += o.use;
    use_wrong += o.use_wrong;
    leave += o.leave;
    leave_wrong += o.leave_wrong;
    gain += o.gain;
    gain_found += o.gain_found;
    hosts_ruled += o.hosts_ruled;
    hosts_worse += o.hosts_worse;
}

double FleetTally::wrong_share() const {
    return use + leave == 0 ? 0 : static_cast<double>(use_wrong + leave_wrong) / (use + leave);
}

std::vector<FleetTally> simulate_fleet(const FleetWorld& world, const std::vector<unsigned>& pairs,
                                       std::uint64_t seed) {
    Random random(seed);
    Cells cells;
    std::vector<std::vector<FleetEntry>> entries(pairs.size());
    for (unsigned kind = 0; kind < world.kinds; kind++)
        for (unsigned target = 0; target < world.classes; target++) {
            const FleetKey key = key_of(kind, target, false);
            const Cell& cell = cells[{key.machine.model, key.kind}] =
                measure(world, busy_with(world, target), draw_effect(world, random), pairs, random);
            for (std::size_t i = 0; i < pairs.size() && !cell.hosts.empty(); i++) {
                entries[i].push_back({key, cell.latency[i], 1, {}});
                entries[i].push_back({key_of(kind, target, true), cell.guard[i], 1, {}});
            }
        }
    std::vector<FleetTally> out;
    for (const auto& each : entries) out.push_back(tally(world, cells, each));
    return out;
}

}  // namespace wq
