// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/cpu_set.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/workqueue.h"

namespace wq {

// The core of each CPU of a topology, which must outlive it. Built once per topology, so that a pass over all
// pods of a scope costs no more than a pass over all CPUs.
class CoreIndex {
  public:
    explicit CoreIndex(const Topology& topology) : cores_(topology.cores) {}
    explicit CoreIndex(Topology&&) = delete;

    // Number of cores with at least one CPU in POD.
    [[nodiscard]] std::size_t cores_in(const CpuSet& pod) const;
    // The cores of POD, each restricted to POD, ordered by their lowest CPU in POD. CPUs without a core are
    // omitted.
    [[nodiscard]] std::vector<CpuSet> split(const CpuSet& pod) const;

  private:
    SetOf cores_;
};

// The shards of CORES, ordered by lowest CPU, by the kernel's rule (kernel/workqueue.c, since 7.1): the
// number of shards is the number of cores divided by SIZE, rounded, at least one; the first shards have one
// core more; siblings follow their leader. SIZE 0 means 1, as in the kernel.
std::vector<CpuSet> shards_of(std::span<const CpuSet> cores, unsigned size);
// The shards of one LLC.
std::vector<CpuSet> shards_of(const CpuSet& llc, const CoreIndex& cores, unsigned size);

// The pods of SCOPE: a partition of the online CPUs, ordered by lowest CPU. Isolated CPUs, which are in no
// LLC, form one separate pod in `cache` and `cache_shard`, as in 7.2.
std::vector<CpuSet> pods_of(Scope scope, const Topology& topology, unsigned shard_size);

// The pods of SCOPE on KERNEL, restricted to online CPUs: the kernel's own if they were read, else
// pods_of(). If only the pods of `cache` were read, shards are derived from them.
std::vector<CpuSet> pods_in(const KernelInfo& kernel, Scope scope, const Topology& topology,
                            unsigned shard_size);

// The LLCs on KERNEL, restricted to CPUs that are online and not isolated: the kernel's pods of `cache` if
// they were read, else the LLCs of TOPOLOGY.
std::vector<Llc> llcs_in(const KernelInfo& kernel, const Topology& topology);

// The scopes whose pods, as read, differ from pods_of(); finest first. The cause is CPUs that were offline
// or isolated at boot (kernel/workqueue.c, workqueue_init_topology()).
std::vector<Scope> unlike_model(const KernelInfo& kernel, const Topology& topology);

// Identifies a machine by everything that pods depend on: fingerprint() of the topology, the shard size if
// it is not the kernel's default, and the pods themselves if they differ from pods_of(). A verdict is only
// valid for the same fingerprint.
std::string machine_fingerprint(const KernelInfo& kernel, const Topology& topology);

// The parts of PODS in EFFECTIVE, without empty pods, ordered by lowest CPU.
std::vector<CpuSet> restrict_to(const std::vector<CpuSet>& pods, const CpuSet& effective);

// Why the pods that KERNEL made at boot were not read and cannot be derived from the current state; "" if
// they are known. KNOWN: the CPUs that were online and not isolated at boot (KnownCpus). Where the others
// are depends on the kernel, but the answer is "" if the pods of the online CPUs do not.
std::string why_pods_unknown(const Topology& topology, const CpuSet& known, const KernelInfo& kernel,
                             unsigned shard_size);

}  // namespace wq
