// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/comparison.h"
#include "evidence/ledger.h"
#include "machine/kernel_info.h"
#include "policy/policy.h"
#include "targets/snapshot.h"
#include "targets/step.h"

namespace wq {

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
    Keys(const Snapshot& snapshot, const Policy& policy) : snapshot_(snapshot), policy_(policy) {}

    void measure_by(Measures measures);
    [[nodiscard]] const Measures& measures() const { return measures_; }
    [[nodiscard]] const std::string& counters() const { return counters_; }  // of the keys made now
    // Call when the topology changed: drops the pods that were computed from it.
    void forget_pods() { partitions_.clear(); }

    // SCOPE: of @default before us. Only with this one does a follower have the kernel's setting.
    void set_first_default(std::optional<Scope> scope) { first_default_ = scope; }
    // FROM_POLICY: the reference is an arm that we kept, not the kernel's.
    [[nodiscard]] LedgerKey ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const;
    // The CPUs of TARGET, within the mask of all unbound workqueues, as a list.
    [[nodiscard]] std::string cpus_of(const Workqueue& target) const;

  private:
    [[nodiscard]] const std::string& partition_of(const CpuSet& effective, Scope scope) const;

    const Snapshot& snapshot_;
    const Policy& policy_;
    std::optional<Scope> first_default_;
    Measures measures_;
    std::string counters_;                                                     // of measures_, as text
    mutable std::map<std::pair<Scope, std::string>, std::string> partitions_;  // by scope and CPUs, as text
};

}  // namespace wq
