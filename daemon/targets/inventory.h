// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "evidence/comparison.h"
#include "evidence/ledger.h"
#include "machine/kernel_info.h"
#include "machine/topology.h"
#include "machine/udev.h"
#include "policy/policy.h"
#include "targets/step.h"

namespace wq {

// The topology, and what follows from it for all targets. Reads only.
class Inventory {
  public:
    // LOG and KERNEL must outlive the Inventory.
    Inventory(Log& log, std::function<Result<Topology>()> read_topology, const KernelInfo& kernel_info)
        : kernel(kernel_info), log_(log), read_topology_(std::move(read_topology)) {}

    // The next look reads the topology again, unless CHANGE is only about a workqueue.
    void changed(Udev::Change change);
    // Reads the topology if it may have changed. Returns whether it was read.
    bool look_at_topology();

    [[nodiscard]] const Topology& topology() const { return known_.topology(); }  // all known CPUs

    const KernelInfo& kernel;
    CpuSet online;            // at the last look
    std::string fingerprint;  // of the known CPUs
    // Why the pods are not known, so that nothing new is set; empty if they are known.
    std::string pods_unknown;
    // Whether a CPU came online since the start, or the machine was suspended. The kernel then lets the
    // workers of strict workqueues run anywhere (kernel/workqueue.c, restore_unbound_workers_cpumask()), and
    // no file shows it.
    bool strict_in_doubt = false;
    bool stale = true;  // the next look reads the topology again
    unsigned topology_reads = 0;

  private:
    Log& log_;
    std::function<Result<Topology>()> read_topology_;
    KnownCpus known_;
};

// What comparisons measure on this host. It is part of their keys.
struct Measures {
    std::vector<ComparedCounter> counters;
    std::string lacks;      // what cannot be counted
    std::string scheduler;  // sched_ext ops in force, cache-aware scheduling
    // Guards alone decide nothing. They come last.
    [[nodiscard]] bool can_judge() const { return !counters.empty() && !counters.front().guard; }
};

// What comparisons measure under JUDGING. WORK_COUNTED: the work of workqueues can be counted here; if not,
// only the counters of the machine are left. LACKS and SCHEDULER: as in Measures.
Measures measures_of(const Judging& judging, bool work_counted, const std::string& lacks,
                     const std::string& scheduler);

// "6.12 cpu smt cache" for "6.12.107-generic": a distribution may have backported a scope.
std::string kernel_key(const KernelInfo& kernel);

// Makes the keys of a target's comparisons.
class Keys {
  public:
    // All arguments must outlive the Keys.
    Keys(const Inventory& inventory, const Policy& policy) : inventory_(inventory), policy_(policy) {}

    void measure_by(Measures measures);
    [[nodiscard]] const Measures& measures() const { return measures_; }
    // Call when the topology changed: drops the pods that were computed from it.
    void forget_pods() { partitions_.clear(); }

    // FROM_POLICY: the reference is an arm that we kept, not the kernel's.
    [[nodiscard]] LedgerKey ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const;
    // The CPUs of TARGET, within the mask of all unbound workqueues, as a list.
    [[nodiscard]] std::string cpus_of(const Workqueue& target) const;

  private:
    [[nodiscard]] const std::string& partition_of(const CpuSet& effective, Scope scope) const;

    const Inventory& inventory_;
    const Policy& policy_;
    Measures measures_;
    std::string counters_;                                                     // of measures_, as text
    mutable std::map<std::pair<Scope, std::string>, std::string> partitions_;  // by scope and CPUs, as text
};

}  // namespace wq
