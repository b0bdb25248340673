// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which CPUs share a last-level cache, in the kernel's view.
//
// The pods of `cache` come from cpus_share_cache() (kernel/workqueue.c, workqueue_init_topology()), which
// compares sd_llc_id: the span of the highest scheduling domain with SD_SHARE_LLC (kernel/sched/topology.c,
// update_top_cache_domain()). Of the levels that each architecture defines, SMT, CLS (clusters, with
// CONFIG_SCHED_CLUSTER) and MC (with CONFIG_SCHED_MC) have that flag. So an LLC is the architecture's MC
// group joined with its groups of the levels below: often, but not always, the cache in sysfs. (Read in 6.12
// and 7.2. If a kernel differs, start at the functions named here.) We assume SMT, and MC on x86 and s390.
//
//  x86  cpu_llc_shared_mask (arch/x86/kernel/smpboot.c, match_llc()): CPUs with the same llc_id, cut at the
//    NUMA node (Intel SNC). llc_id is that of the L3. Without an L3 it is that of the L2, except on AMD and
//    Hygon, where it is the package; without any cache it is the package for all vendors
//    (kernel/cpu/cacheinfo.c; kernel/cpu/topology_amd.c, legacy_set_llc()). Hypervisors can hide both. If
//    every package has one thread, caches do not count (set_cpu_sibling_map()). Not implemented here: dies of
//    AMD CPUs that have CPUID leaf 0x80000026 and no L3; the debugging option split_llc=.
//  arm64, riscv, arm  cpu_coregroup_mask() (drivers/base/arch_topology.c): the node; or the package, if it
//    is inside the node; or the CPUs that share the outermost cache, if they are inside that. With
//    CONFIG_SCHED_CLUSTER the result grows to the cluster that contains it (Ampere Altra: pairs). Without
//    CONFIG_SCHED_MC it is the cluster, unless that contains the whole group of MC
//    (cpu_clustergroup_mask()); then it is the core. Where the firmware describes no cache, sysfs shows one
//    of all CPUs (drivers/base/cacheinfo.c, use_arch_info), which the kernel does not use here. Using it
//    changes nothing; only a first level without a size must be omitted.
//  powerpc  CPUs that share the L2, cut at the node (arch/powerpc/kernel/smp.c, shared_caches): MC does not
//    have the flag. A "big core" counts as two cores, and its L2 may have fewer CPUs than the core.
//  s390  The CPUs of a socket (arch/s390/kernel/topology.c, cpu_coregroup_mask()): core_siblings in sysfs.
//  No architecture known: the outermost cache, cut at the node.
//
// The kernel refuses to build domains that overlap (topology_span_sane()), and sd_llc_id then keeps its old
// value. A cache of several packages (except on arm64) or a cluster of several nodes is an error of firmware
// or hypervisor. In these cases `llc_unknown` gives the reason, and only pods read by BPF show what the
// kernel did.
#include "machine/llc_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/text.h"

namespace wq {
namespace {

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

class Rule {
  public:
    Rule(const Topology& topology, const LlcFacts& facts)
        : t_(topology), facts_(facts), packages_(topology.packages), clusters_(facts.clusters) {
        for (const NumaNode& node : topology.nodes) nodes_.add(node.cpus);
        std::map<unsigned, unsigned> outermost;  // CPU -> level
        for (const Cache& cache : facts.caches)
            for (const unsigned cpu : cache.cpus.cpus())
                outermost[cpu] = std::max(outermost[cpu], cache.level);
        for (const Cache& cache : facts.caches) {
            if (cache.level == 2) l2_.add(cache.cpus);
            if (cache.level == 3) l3_.add(cache.cpus);
            for (const unsigned cpu : cache.cpus.cpus())
                if (outermost[cpu] == cache.level) outermost_.add(cpu, cache.cpus);
        }
        CpuSet in_packages;
        for (const CpuSet& package : t_.packages) in_packages |= package;
        one_thread_packages_ =
            !t_.packages.empty() && in_packages == t_.online &&
            std::ranges::all_of(t_.packages, [](const CpuSet& p) { return p.count() == 1; });
    }

    void set(Topology& out) {
        std::vector<CpuSet> spans;
        for (const CpuSet& core : t_.cores) {
            spans.push_back(span({core.first(), core}) | core);
            for (const unsigned cpu : core.cpus())
                if (cpu != core.first() && (span({cpu, core}) | core) != spans.back())
                    doubt(fmt::format("CPUs {} are one core, but share different caches", core.list()));
        }
        if (!are_groups(spans)) {
            doubt("the groups of CPUs that share a cache overlap");
            for (std::size_t i = 0; i < spans.size(); i++)
                spans[i] = outermost({t_.cores[i].first(), t_.cores[i]}) | t_.cores[i];
        }
        make_llcs(spans, out);
        out.llc_unknown = std::move(why_);
    }

  private:
    struct Thread {
        unsigned cpu;
        const CpuSet& core;
    };

    void doubt(std::string why) {
        if (why_.empty()) why_ = std::move(why);
    }

    [[nodiscard]] const CpuSet& node_of(const Thread& one) const {
        const CpuSet* node = nodes_.of(one.cpu);
        return node != nullptr ? *node : t_.online;
    }

    // The package of ONE; only its core if the package is not known.
    const CpuSet& package_of(const Thread& one) {
        if (const CpuSet* package = packages_.of(one.cpu)) return *package;
        doubt(fmt::format("the package of CPU {} is not known", one.cpu));
        return one.core;
    }

    // The part of CACHE in ONE's node. CACHE should lie in one package.
    CpuSet cut(const CpuSet& cache, const Thread& one) {
        const CpuSet* package = packages_.of(one.cpu);
        if (package != nullptr && !package->contains(cache & node_of(one)))
            doubt(fmt::format("CPUs {} share a cache but are in several packages", cache.list()));
        return cache & node_of(one);
    }

    // ONE's outermost cache as in sysfs, the fallback.
    [[nodiscard]] CpuSet outermost(const Thread& one) const {
        const CpuSet* cache = outermost_.of(one.cpu);
        return cache != nullptr ? *cache & node_of(one) : one.core;
    }

    CpuSet span(const Thread& one) {
        const std::string& arch = facts_.arch;
        if (is_one_of(arch, {"x86_64", "i386", "i486", "i586", "i686"})) return on_x86(one);
        if (arch == "aarch64" || arch.starts_with("arm") || arch.starts_with("riscv")) return generic(one);
        if (arch.starts_with("ppc")) return on_powerpc(one);
        if (arch.starts_with("s390")) return package_of(one);
        if (arch.empty()) return of_unknown(one);
        if (t_.cores.size() > 1)
            doubt(fmt::format("which CPUs share a cache on {} is not known here",
                              printable(arch.substr(0, 32))));
        return outermost(one);
    }

    CpuSet on_x86(const Thread& one) {
        if (one_thread_packages_) return one.core;
        if (const CpuSet* l3 = l3_.of(one.cpu)) return cut(*l3, one);
        CpuSet package = package_of(one) & node_of(one);
        const CpuSet* l2 = l2_.of(one.cpu);
        if (l2 == nullptr) return package;
        CpuSet by_l2 = cut(*l2, one);
        if (by_l2 == package) return package;
        if (facts_.vendor.empty()) doubt("there is no L3, and the vendor of the CPUs is not known");
        return is_one_of(facts_.vendor, {"AuthenticAMD", "HygonGenuine"}) ? package : by_l2;
    }

    CpuSet on_powerpc(const Thread& one) {
        const CpuSet* l2 = l2_.of(one.cpu);
        if (l2 == nullptr) return one.core;
        if (!l2->contains(one.core))
            doubt(fmt::format("CPUs {} are one core, but do not share its L2", one.core.list()));
        return *l2 & node_of(one);
    }

    CpuSet generic(const Thread& one) {
        CpuSet span = node_of(one);
        if (const CpuSet& package = package_of(one); span.contains(package)) span = package;
        if (const CpuSet* cache = outermost_.of(one.cpu); cache != nullptr && span.contains(*cache))
            span = *cache;
        const CpuSet* cluster = clusters_.of(one.cpu);
        if (one.core.contains(cluster != nullptr ? span | *cluster : span)) return one.core;
        if (!levels_) levels_ = facts_.sched_levels();
        know(levels_->mc, "CONFIG_SCHED_MC");
        const bool mc = levels_->mc.value_or(true);
        // Without MC, CLS omits clusters that contain the whole MC group (cpu_clustergroup_mask()).
        const bool adds =
            cluster != nullptr && (mc ? !(span | one.core).contains(*cluster) : !cluster->contains(span));
        if (adds) know(levels_->clusters, "CONFIG_SCHED_CLUSTER");
        if (!mc) span = one.core;
        if (!adds || !levels_->clusters.value_or(false)) return span;
        if (!node_of(one).contains(*cluster))
            doubt(fmt::format("CPUs {} are one cluster, but of several NUMA nodes", cluster->list()));
        return span | *cluster;  // contains `span`, or overlaps it, which set() rejects
    }

    void know(std::optional<bool> level, const char* option) {
        if (!level)
            doubt(fmt::format("whether the kernel has {} is not known (no BTF, no config in /boot)", option));
    }

    CpuSet of_unknown(const Thread& one) {
        if (const CpuSet* cache = outermost_.of(one.cpu)) return cut(*cache, one);
        const CpuSet* package = packages_.of(one.cpu);
        if (t_.cores.size() > 1 && (package == nullptr || !one.core.contains(*package)))
            doubt(fmt::format("no cache of CPU {} is known, and the architecture is unknown", one.cpu));
        return one.core;
    }

    // Whether any two of SPANS are equal or disjoint. Each span contains its own core.
    [[nodiscard]] static bool are_groups(const std::vector<CpuSet>& spans) {
        std::map<unsigned, const CpuSet*> by_first;
        CpuSet seen;
        for (const CpuSet& span : spans) {
            const auto [found, is_new] = by_first.emplace(span.first(), &span);
            if (is_new ? span.intersects(seen) : *found->second != span) return false;
            if (is_new) seen |= span;
        }
        return true;
    }

    void make_llcs(const std::vector<CpuSet>& spans, Topology& out) const {
        std::map<const CpuSet*, unsigned> id_of;
        for (const NumaNode& node : t_.nodes) id_of[&node.cpus] = node.id;
        // Overlapping spans are separated by their lowest CPU and their node.
        std::map<std::pair<unsigned, std::optional<unsigned>>, Llc> llcs;
        for (std::size_t i = 0; i < spans.size(); i++) {
            const CpuSet& core = t_.cores[i];
            const CpuSet usable = core - t_.isolated;
            if (usable.empty()) continue;
            const CpuSet* node = nodes_.of(core.first());
            const auto id = node == nullptr ? std::nullopt : std::optional(id_of[node]);
            Llc& llc = llcs[{spans[i].first(), id}];
            llc.cpus |= usable;
            llc.numa_node = id;
        }
        out.llcs.clear();
        for (auto& [key, llc] : llcs) out.llcs.push_back(std::move(llc));
        std::ranges::sort(out.llcs, {}, [](const Llc& llc) { return llc.cpus.first(); });
    }

    const Topology& t_;
    const LlcFacts& facts_;
    SetOf nodes_;
    SetOf packages_;
    SetOf clusters_;
    SetOf l2_;
    SetOf l3_;
    SetOf outermost_;
    bool one_thread_packages_ = false;   // all packages have one thread
    std::optional<SchedLevels> levels_;  // filled on first use
    std::string why_;
};

}  // namespace

void set_llcs(Topology& topology, const LlcFacts& facts) {
    Rule(topology, facts).set(topology);
}

}  // namespace wq
