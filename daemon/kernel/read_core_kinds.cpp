// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel/read_core_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/file.h"

namespace wq {
namespace {

// Intel hybrids have a PMU for each kind of core, with a list of its CPUs.
CoreKinds by_pmu(const Paths& paths, const Topology& topology) {
    const auto cpus_of = [&](const char* pmu) {
        return CpuSet::parse_list(read_first_line(paths.pmu(pmu) + "/cpus")).value_or(CpuSet{}) &
               topology.online;
    };
    CoreKinds out{cpus_of("cpu_core"), cpus_of("cpu_atom"), cpus_of("cpu_lowpower"),
                  "by /sys/devices/cpu_core and cpu_atom"};
    return out;
}

// The capacity of CPU: 1024 for the fastest one, 0 if not known.
unsigned capacity_of(const Paths& paths, unsigned cpu) {
    const std::string text = read_first_line(fmt::format("{}/cpu{}/cpu_capacity", paths.cpus(), cpu));
    unsigned out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

// Cores of one kind may also differ in their maximum clock, so only cores below four fifths of the largest
// capacity are E-cores.
CoreKinds by_capacity(const Paths& paths, const Topology& topology) {
    std::map<unsigned, unsigned> capacities;  // CPU -> capacity
    unsigned most = 0;
    for (const CpuSet& core : topology.cores) {
        const unsigned capacity = capacity_of(paths, core.first());
        if (capacity == 0) return {};
        capacities[core.first()] = capacity;
        most = std::max(most, capacity);
    }
    CoreKinds out;
    for (const CpuSet& core : topology.cores)
        (capacities[core.first()] * 5ULL < most * 4ULL ? out.efficient : out.performance) |= core;
    out.source = "by cpu_capacity: an E-core has less than four fifths of the largest";
    return out;
}

}  // namespace

CoreKinds read_core_kinds(const Paths& paths, const Topology& topology) {
    for (auto* read : {by_pmu, by_capacity})
        if (CoreKinds kinds = read(paths, topology); kinds.hybrid() && !kinds.performance.empty())
            return kinds;
    return core_kinds_by_threads(topology);
}

}  // namespace wq
