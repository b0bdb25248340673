// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <map>
#include <string>
#include <utility>

#include "engine/inventory.h"
#include "engine/measures.h"
#include "engine/step.h"
#include "evidence/ledger.h"
#include "judge/verdicts.h"
#include "model/policy.h"

namespace wq {

// What a comparison of a target is known by: in the ledger, and in the history of verdicts.
class Keys {
  public:
    // All outlive it.
    Keys(const Inventory& inventory, const Policy& policy) : inventory_(inventory), policy_(policy) {}

    void measure_by(Measures measures) { measures_ = std::move(measures); }
    [[nodiscard]] const Measures& measures() const { return measures_; }
    // Pods were computed from a topology that is another one now.
    void forget_pods() { partitions_.clear(); }

    [[nodiscard]] VerdictKey verdict_key(const Workqueue& target, const Arms& arms) const;
    // FROM_POLICY: the reference is what we kept, not what the kernel had.
    [[nodiscard]] LedgerKey ledger_key(const Workqueue& target, const Arms& arms, bool from_policy) const;
    // The CPUs of TARGET as verdict_key() has them.
    [[nodiscard]] std::string cpus_of(const Workqueue& target) const;

  private:
    [[nodiscard]] const std::string& partition_of(const CpuSet& effective, Scope scope) const;

    const Inventory& inventory_;
    const Policy& policy_;
    Measures measures_;
    mutable std::map<std::pair<Scope, std::string>, std::string> partitions_;  // by scope and CPUs, as text
};

}  // namespace wq
