// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/cpu_set.h"
#include "model/kernel_info.h"
#include "model/scope.h"
#include "model/topology.h"

namespace wq {

// Which core a CPU belongs to. Made once per topology, so that looking at all pods of a scope costs as much
// as looking at all CPUs.
class CoreIndex {
  public:
    explicit CoreIndex(const Topology& topology);

    // Cores with at least one CPU in POD.
    [[nodiscard]] std::size_t cores_in(const CpuSet& pod) const;
    // The parts of POD's cores that lie in POD, ascending by their lowest CPU there. CPUs of no core are left
    // out.
    [[nodiscard]] std::vector<CpuSet> split(const CpuSet& pod) const;

  private:
    std::vector<unsigned> core_of_;  // by CPU; kNone where there is none
};

// The shards of CORES, ascending by their lowest CPU, by the kernel's rule (kernel/workqueue.c, since 7.1):
// as many as cores divided by SIZE, rounded, at least one; the first ones have one core more; siblings follow
// their leader. SIZE 0 means 1, as in the kernel.
std::vector<CpuSet> shards_of(std::span<const CpuSet> cores, unsigned size);
// The shards of one LLC.
std::vector<CpuSet> shards_of(const CpuSet& llc, const CoreIndex& cores, unsigned size);

// The pods of SCOPE: a partition of the online CPUs, ascending by lowest CPU. Isolated CPUs, which belong to
// no LLC, make one pod of their own in `cache` and `cache_shard`, as in 7.2.
std::vector<CpuSet> pods_of(Scope scope, const Topology& topology, unsigned shard_size);

// The pods of SCOPE that KERNEL has, of the online CPUs: its own where they were read, else those above.
// Where those of `cache` alone were read, shards are of them.
std::vector<CpuSet> pods_in(const KernelInfo& kernel, Scope scope, const Topology& topology,
                            unsigned shard_size);

// The LLCs that KERNEL has, of the online CPUs that are not isolated: its own pods of `cache` where they were
// read, else those of TOPOLOGY.
std::vector<Llc> llcs_in(const KernelInfo& kernel, const Topology& topology);

// The scopes whose pods, as read, are not those above; finest first. CPUs that were offline or isolated at
// boot make such (kernel/workqueue.c, workqueue_init_topology()).
std::vector<Scope> unlike_model(const KernelInfo& kernel, const Topology& topology);

// Tells machines apart by all that pods depend on: fingerprint() of the topology, the size of shards where
// the kernel was told another than its own, and the pods themselves where they are not those above. A verdict
// of one holds for no other.
std::string machine_fingerprint(const KernelInfo& kernel, const Topology& topology);

// What of PODS lies in EFFECTIVE; empty pods are dropped, the order is by lowest CPU.
std::vector<CpuSet> restrict_to(const std::vector<CpuSet>& pods, const CpuSet& effective);

}  // namespace wq
