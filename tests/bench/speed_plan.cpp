// SPDX-License-Identifier: LGPL-2.1-or-later
// The time to plan for a growing number of CPUs, and the time hwloc needs to load the largest of these
// machines.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <stdlib.h>

#include <map>
#include <memory>

#include "fake_machine.h"
#include "plan/plan.h"

namespace wq::test {
namespace {

// Sockets with siblings numbered far apart, as on x86; one LLC; sockets of one CPU, as in a virtual machine.
enum Machines { sockets, one_llc, small_sockets };
constexpr const char* kNames[] = {"sockets-of-32x2", "one-llc", "sockets-of-one"};

CpuTree tree_of(Machines kind, unsigned cpus) {
    switch (kind) {
        case sockets:
            return {.sockets = cpus / 64, .cores = 32, .threads = 2};
        case one_llc:
            return {.sockets = 1, .cores = cpus};
        case small_sockets:
            break;
    }
    return {.sockets = cpus, .cores = 1, .nodes = 0};
}

Topology topology_of(const CpuTree& tree) {
    Topology out = machine({.sockets = tree.sockets, .cores = tree.cores, .threads = tree.threads});
    if (tree.nodes == 0) {
        out.nodes.clear();
        for (Llc& llc : out.llcs) llc.numa_node.reset();
    }
    return out;
}

// Makes each tree once, because this takes longer than all measurements.
const TempTree& folder_of(Machines kind, unsigned cpus) {
    static std::map<std::pair<Machines, unsigned>, std::unique_ptr<TempTree>> trees;
    auto& tree = trees[{kind, cpus}];
    if (!tree) tree = std::make_unique<TempTree>(std::vector<Entry>{cpu_tree(tree_of(kind, cpus))});
    return *tree;
}

void plan(benchmark::State& state, Machines kind) {
    const Topology topology = topology_of(tree_of(kind, static_cast<unsigned>(state.range(0))));
    const KernelInfo kernel = kernel_72();
    const Policy policy = rule_for_all();
    std::vector<Workqueue> targets = {default_target(topology, Scope::cache)};
    for (unsigned i = 0; i < 32; i++)
        targets.push_back(unbound(topology, Scope::cache, fmt::format("kcryptd-254:{}-1", i)));
    for (auto _ : state)
        benchmark::DoNotOptimize(
            make_plan({topology, kernel, policy, targets, "", kernel.cache_shard_size.value()}));
    state.SetComplexityN(state.range(0));
}

// Keeps only what a plan needs, the caches; a full load would take longer.
void hwloc_load(benchmark::State& state, Machines kind) {
    const TempTree& tree = folder_of(kind, static_cast<unsigned>(state.range(0)));
    ::setenv("HWLOC_FSROOT", tree.root().c_str(), 1);
    ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    for (auto _ : state) {
        hwloc_topology_t hwloc = nullptr;
        hwloc_topology_init(&hwloc);
        hwloc_topology_set_flags(
            hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING |
                       HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                       HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
        hwloc_topology_set_all_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
        hwloc_topology_set_cache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
        hwloc_topology_set_icache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
        if (hwloc_topology_load(hwloc) != 0 ||
            hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU) != static_cast<int>(state.range(0)))
            state.SkipWithError("hwloc does not see these CPUs");
        hwloc_topology_destroy(hwloc);
    }
    ::unsetenv("HWLOC_FSROOT");
    ::unsetenv("HWLOC_COMPONENTS");
}

const bool registered = [] {
    for (const Machines kind : {sockets, one_llc, small_sockets}) {
        const auto name = [&](const char* what) { return fmt::format("{}/{}", what, kNames[kind]); };
        benchmark::RegisterBenchmark(name("plan").c_str(), plan, kind)->RangeMultiplier(2)->Range(64, 8192);
        benchmark::RegisterBenchmark(name("hwloc").c_str(), hwloc_load, kind)->Arg(8192);
    }
    return true;
}();

}  // namespace
}  // namespace wq::test
