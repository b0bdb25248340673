// SPDX-License-Identifier: LGPL-2.1-or-later
#include "plan/pods.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

namespace wq {
namespace {

// Most pods are already sorted.
void sort_by_first(std::vector<CpuSet>& pods) {
    if (std::ranges::is_sorted(pods, {}, &CpuSet::first)) return;
    std::ranges::sort(pods, {}, &CpuSet::first);
}

CpuSet joined(std::span<const CpuSet> sets) {
    CpuSet all;
    for (const auto& set : sets) all |= set;
    return all;
}

// The CPUs of each of GROUPS: nodes, LLCs.
std::vector<CpuSet> cpus_of(const auto& groups) {
    std::vector<CpuSet> pods;
    for (const auto& group : groups) pods.push_back(group.cpus);
    return pods;
}

std::vector<CpuSet> all_shards_of(const std::vector<Llc>& llcs, const Topology& topology, unsigned size) {
    const CoreIndex cores(topology);
    std::vector<CpuSet> pods;
    for (const auto& llc : llcs)
        for (auto& shard : shards_of(llc.cpus, cores, size)) pods.push_back(std::move(shard));
    return pods;
}

// Adds one pod to PODS with the remaining online CPUs: the isolated ones, which have no LLC (7.2 puts them
// into one pod), or all CPUs if the source has no NUMA nodes.
std::vector<CpuSet> with_rest(std::vector<CpuSet> pods, const CpuSet& online) {
    CpuSet rest = online - joined(pods);
    if (!rest.empty()) pods.push_back(std::move(rest));
    sort_by_first(pods);
    return pods;
}

}  // namespace

std::vector<CpuSet> CoreIndex::split(const CpuSet& pod) const {
    std::map<const CpuSet*, CpuSet> parts;
    for (const unsigned cpu : pod.cpus())
        if (const CpuSet* core = cores_.of(cpu)) parts[core].add(cpu);
    std::vector<CpuSet> out;
    for (auto& [core, part] : parts) out.push_back(std::move(part));
    sort_by_first(out);
    return out;
}

std::size_t CoreIndex::cores_in(const CpuSet& pod) const {
    std::vector<const CpuSet*> cores;
    for (const unsigned cpu : pod.cpus())
        if (const CpuSet* core = cores_.of(cpu)) cores.push_back(core);
    std::ranges::sort(cores);
    return static_cast<std::size_t>(std::unique(cores.begin(), cores.end()) - cores.begin());
}

std::vector<CpuSet> shards_of(std::span<const CpuSet> cores, unsigned size) {
    if (cores.empty()) return {};
    const std::size_t per_shard = std::max(size, 1U);
    const std::size_t shards = std::max<std::size_t>((cores.size() + per_shard / 2) / per_shard, 1);
    const std::size_t least = cores.size() / shards;
    const std::size_t larger = cores.size() % shards;
    std::vector<CpuSet> out;
    for (auto rest = cores; !rest.empty();) {
        const std::size_t here = least + (out.size() < larger ? 1 : 0);
        out.push_back(joined(rest.first(here)));
        rest = rest.subspan(here);
    }
    return out;
}

std::vector<CpuSet> shards_of(const CpuSet& llc, const CoreIndex& cores, unsigned size) {
    return shards_of(cores.split(llc), size);
}

std::vector<CpuSet> pods_of(Scope scope, const Topology& topology, unsigned shard_size) {
    if (topology.online.empty()) return {};
    switch (scope) {
        case Scope::cpu: {
            std::vector<CpuSet> pods;
            for (const unsigned cpu : topology.online.cpus()) pods.push_back({cpu});
            return pods;
        }
        case Scope::smt:
            return with_rest(topology.cores, topology.online);
        case Scope::cache_shard:
            return with_rest(all_shards_of(topology.llcs, topology, shard_size), topology.online);
        case Scope::cache:
            return with_rest(cpus_of(topology.llcs), topology.online);
        case Scope::numa:
            return with_rest(cpus_of(topology.nodes), topology.online);
        case Scope::system:
            break;
    }
    return {topology.online};
}

std::vector<CpuSet> pods_in(const KernelInfo& kernel, Scope scope, const Topology& topology,
                            unsigned shard_size) {
    if (kernel.pods && kernel.pods->contains(scope))
        return restrict_to(cpus_of(kernel.pods->at(scope)), topology.online);
    if (scope != Scope::cache_shard) return pods_of(scope, topology, shard_size);
    return with_rest(all_shards_of(llcs_in(kernel, topology), topology, shard_size), topology.online);
}

std::vector<Llc> llcs_in(const KernelInfo& kernel, const Topology& topology) {
    if (!kernel.pods || !kernel.pods->contains(Scope::cache)) return topology.llcs;
    std::vector<Llc> out;
    for (const KernelPod& pod : kernel.pods->at(Scope::cache))
        if (CpuSet cpus = (pod.cpus & topology.online) - topology.isolated; !cpus.empty()) {
            const auto node = std::ranges::find_if(
                topology.nodes, [&](const NumaNode& n) { return n.cpus.has(cpus.first()); });
            out.push_back(
                {std::move(cpus), node == topology.nodes.end() ? std::nullopt : std::optional(node->id)});
        }
    std::ranges::sort(out, {}, [](const Llc& llc) { return llc.cpus.first(); });
    return out;
}

std::vector<Scope> unlike_model(const KernelInfo& kernel, const Topology& topology) {
    std::vector<Scope> out;
    if (!kernel.pods) return out;
    const unsigned size = kernel.cache_shard_size.value_or(1);  // not used without cache_shard
    for (const Scope scope : kernel.scopes)
        if (kernel.pods->contains(scope) &&
            pods_in(kernel, scope, topology, size) != pods_of(scope, topology, size))
            out.push_back(scope);
    return out;
}

std::string machine_fingerprint(const KernelInfo& kernel, const Topology& topology) {
    std::string pods;
    // Needed because the pods of cache_shard equal the model's at any size.
    if (const unsigned size = kernel.cache_shard_size.value_or(kKernelShardSize); size != kKernelShardSize)
        pods = "shards of " + std::to_string(size) + ";";
    for (const Scope scope : unlike_model(kernel, topology)) {
        pods += std::string(name_of(scope)) + " ";
        for (const CpuSet& pod : pods_in(kernel, scope, topology, 1)) pods += pod.list() + ";";
    }
    return fingerprint(topology, pods);
}

std::vector<CpuSet> restrict_to(const std::vector<CpuSet>& pods, const CpuSet& effective) {
    std::vector<CpuSet> out;
    for (const auto& pod : pods)
        if (CpuSet left = pod & effective; !left.empty()) out.push_back(std::move(left));
    sort_by_first(out);
    return out;
}

namespace {

// The CPUs that the boot options in KERNEL kept offline at boot, although they may be online now.
CpuSet held_back(const Topology& topology, const KernelInfo& kernel) {
    static constexpr std::string_view kMaxCpus = "maxcpus=";
    std::string options = kernel.cpus_held_back;
    CpuSet held;
    if (const auto at = options.find(kMaxCpus); at != std::string::npos) {
        std::size_t left = std::strtoul(options.c_str() + at + kMaxCpus.size(), nullptr, 10);
        for (const unsigned cpu : topology.present.cpus())
            if (left == 0 || left-- == 0) held.add(cpu);
        options.erase(at, options.find(' ', at) - at);
    }
    if (options.empty()) return held;
    for (const CpuSet& core : topology.cores) held |= core - CpuSet{core.first()};
    return held | (topology.present - topology.online);
}

// Where a kernel puts CPUs that are offline or isolated at boot: all of them in one pod of `cache` (7.2), or
// in CPU 0's (7.1 and before).
enum class Place : std::uint8_t { apart, with_cpu_0 };

// The machine NOW as a kernel sees it at boot if only the CPUs of KNOWN are usable then, with their LLCS.
Topology at_boot(const Topology& now, const CpuSet& known, std::vector<Llc> llcs, Place place) {
    Topology boot;
    boot.online = known | now.possible | now.online;
    const CpuSet absent = boot.online - known;
    const CpuSet alone = absent - now.isolated;  // in `smt`, for ever
    for (const CpuSet& core : now.cores)
        if (CpuSet part = core - alone; !part.empty()) boot.cores.push_back(std::move(part));
    for (const unsigned cpu : alone.cpus()) boot.cores.push_back({cpu});
    bool placed = false;
    for (Llc& llc : llcs) {
        const bool home = place == Place::with_cpu_0 && llc.cpus.has(0) && known.has(0);
        llc.cpus &= known;
        if (home) llc.cpus |= absent;
        placed = placed || home;
    }
    if (!placed) llcs.push_back({absent, std::nullopt});
    std::erase_if(llcs, [](const Llc& llc) { return llc.cpus.empty(); });
    boot.llcs = std::move(llcs);
    return boot;
}

// Whether the shards of the LLCs stay the same wherever the CPUs of MORE are, which were perhaps online and
// not isolated at boot.
bool have_room_for(const CpuSet& more, const Topology& topology, const std::vector<Llc>& llcs,
                   unsigned shard_size) {
    const CoreIndex cores(topology);
    return more.empty() || std::ranges::all_of(llcs, [&](const Llc& llc) {
               const std::size_t here = cores.cores_in(llc.cpus);
               return here <= 1 ||
                      here + more.count() + shard_size / 2 < 2 * std::size_t{std::max(shard_size, 1U)};
           });
}

// Whether the pods of the online CPUs are those of the model wherever the CPUs that are not KNOWN are.
// PERHAPS: those of them that were perhaps usable at boot.
bool same_pods_everywhere(const Topology& topology, const CpuSet& known, const CpuSet& perhaps,
                          const KernelInfo& kernel, unsigned shard_size) {
    if (known.contains(topology.possible | topology.online)) return true;
    const auto llcs = llcs_in(kernel, topology);
    if (kernel.has(Scope::cache_shard) && !have_room_for(perhaps, topology, llcs, shard_size)) return false;
    for (const Place place : {Place::apart, Place::with_cpu_0}) {
        const Topology boot = at_boot(topology, known, llcs, place);
        for (const Scope scope : {Scope::smt, Scope::cache, Scope::cache_shard})
            if (kernel.has(scope) && restrict_to(pods_of(scope, boot, shard_size), topology.online) !=
                                         pods_in(kernel, scope, topology, shard_size))
                return false;
    }
    return true;
}

}  // namespace

std::string why_pods_unknown(const Topology& topology, const CpuSet& known, const KernelInfo& kernel,
                             unsigned shard_size) {
    // A CPU whose files cannot be read looks like a CPU that shares nothing.
    if (!topology.warnings.empty()) return "the topology is in doubt: " + topology.warnings.front();
    // The kernel has no pods of another shard size. These are derived from LLCs and the current topology.
    if (kernel.pods && (!kernel.has(Scope::cache_shard) || kernel.pods->contains(Scope::cache_shard)))
        return "";
    if (!kernel.pods && !topology.llc_unknown.empty()) return topology.llc_unknown;
    const CpuSet held = held_back(topology, kernel);
    const CpuSet unseen = topology.present - known;
    if (same_pods_everywhere(topology, known - held, unseen - held, kernel, shard_size)) return "";
    if (held.intersects(topology.online)) return kernel.cpus_held_back + " kept CPUs offline at boot";
    if (unseen.intersects(topology.isolated)) return "isolated CPUs: " + (unseen & topology.isolated).list();
    if (const CpuSet late = topology.online - known; !late.empty())
        return "CPUs that were not usable when the daemon first started: " + late.list();
    if (!unseen.empty()) return "offline CPUs: " + unseen.list();
    return "CPUs possible but not present: " + (topology.possible - topology.present).list();
}

}  // namespace wq
