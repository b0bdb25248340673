// SPDX-License-Identifier: LGPL-2.1-or-later
#include "counters/counter_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "counters/machine_counter.h"

namespace wq {
namespace {

constexpr std::array kKinds = {
    CounterKind{"latency", "ns", false, 0, [](const WorkCount& c, double) { return c.latency; }},
    CounterKind{"tail", "ns", false, 0, [](const WorkCount& c, double) { return c.tail; }},
    CounterKind{"exec", "ns", false, 0, [](const WorkCount& c, double) { return c.exec; }},
    // An uncontended lock may have cost 0, which has no logarithm.
    CounterKind{"lock", "ns an item", false, 100,
                [](const WorkCount& c, double) { return std::max(c.lock, 1.0); }},
    CounterKind{"items", "items/s", true, 0,
                [](const WorkCount& c, double seconds) { return static_cast<double>(c.items) / seconds; }},
    // An unknown value stays NaN.
    CounterKind{"throughput", "items/s", true, 0,
                [](const WorkCount& c, double) { return std::max(c.throughput, kZeroReading); }},
    CounterKind{"cpu", "ns an item", false, 0, [](const WorkCount& c, double) { return c.cpu; }},
    CounterKind{.name = kOthers, .unit = "", .guard_only = true},
    // cpu.full is always 0 (kernel/sched/psi.c, psi_show()).
    CounterKind{"psi:cpu.some", "of the time", false, 0.01},
    CounterKind{"psi:io.some", "of the time", false, 0.01},
    CounterKind{"psi:io.full", "of the time", false, 0.01},
    CounterKind{"psi:memory.some", "of the time", false, 0.01},
    CounterKind{"psi:memory.full", "of the time", false, 0.01},
    CounterKind{"diskstats:DEV.rkB", "kB/s", true, 100},
    CounterKind{"diskstats:DEV.wkB", "kB/s", true, 100},
    CounterKind{"file:/PATH", "", false, 0},
};

}  // namespace

std::span<const CounterKind> counter_kinds() {
    return kKinds;
}

const CounterKind* find_counter(std::string_view name) {
    const std::string pattern = machine_counter_pattern(name);
    const auto row =
        std::ranges::find(kKinds, pattern.empty() ? name : std::string_view(pattern), &CounterKind::name);
    return row == kKinds.end() ? nullptr : &*row;
}

bool counter_higher_is_better(std::string_view name) {
    const CounterKind* kind = find_counter(name);
    return kind != nullptr && kind->higher_is_better;
}

bool is_work_counter(std::string_view name) {
    const CounterKind* kind = find_counter(name);
    return kind != nullptr && kind->of_work != nullptr;
}

unsigned sampled_every(double items) {
    constexpr double kMost = 65535;
    if (!(items >= kTimed)) return 1;  // NaN too
    return static_cast<unsigned>(std::min(std::round(items / kTimed), kMost));
}

}  // namespace wq
