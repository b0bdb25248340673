// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "machine/workqueue_fs.h"
#include "targets/conditions.h"
#include "targets/keys.h"
#include "targets/target.h"

namespace wq {

// What is known of the targets: looks, plans (plan/plan.h), takes the step that the ledger allows. Writes
// nothing to /sys.
class Targets {
  public:
    struct Edges {
        WorkqueueFs& files;
        OwnedStore& store;  // has been loaded, and nobody else changes it meanwhile
        Log& log;
        std::function<Result<Topology>()> read_topology;
        OptedOut opted_out;
        const VerdictStore& verdicts;
        std::function<std::int64_t()> now;    // s since 1970
        const Ledger* ledger = nullptr;       // nullptr: nothing is compared
        const OrderBook* book = nullptr;      // nullptr: there are no experiments
        std::function<HostCpus()> cpus = {};  // the possible and the isolated ones, for masks
    };
    Targets(Edges edges, KernelInfo kernel);
    Targets(const Targets&) = delete;  // the parts have references to each other

    [[nodiscard]] const Edges& edges() const { return edges_; }
    [[nodiscard]] TargetLog& log() { return log_; }
    [[nodiscard]] std::map<std::string, Target>& all() { return all_; }
    [[nodiscard]] const std::map<std::string, Target>& all() const { return all_; }
    // nullptr if there is none.
    [[nodiscard]] const Target* find(const std::string& name) const { return find_in(all_, name); }
    [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    [[nodiscard]] const NamedOnly& named_only() const { return named_only_; }
    // Why nothing is written now; empty if the policy is followed.
    [[nodiscard]] std::string observing() const;
    // Why @default must not be moved; "" if it may be.
    [[nodiscard]] const std::string& default_stays() const { return default_stays_; }

    // For Engine::set_policy(), which has the masks too. Forgets refusals, orders to revert and external
    // writers, so that these targets are decided again.
    void set_policy(Policy policy);
    // Policy::expire(), for the next pass.
    bool expire(std::int64_t now) { return policy_.expire(now); }
    // From now on only baselines are written; WHY is the reason, "" ends this.
    void observe(std::string why) { observe_why_ = std::move(why); }
    void name_only(NamedOnly what) { named_only_ = std::move(what); }
    void measure_by(Measures measures) { keys_.measure_by(std::move(measures)); }
    // For Engine::changed(): the next look takes CHANGE into account.
    void changed(Udev::Change change);

    // Looks at every target, and plans.
    void look();
    // Looks at NAME alone, whose mask is within UNBOUND_MASK (WorkqueueFs::unbound_mask()).
    void look_at(const std::string& name, const CpuSet& unbound_mask);
    // Plans with what the last look found.
    void plan();
    // Asks the ledger for the step of TARGET, if there can be a comparison.
    void make_step(Target& target);
    // Whether what we own, and the mask of all unbound workqueues, is as at the last look, which read all.
    [[nodiscard]] bool is_as_seen() const;

  private:
    Edges edges_;
    KernelInfo kernel_;
    Policy policy_;
    Snapshot snapshot_;
    TargetLog log_;
    Keys keys_;
    NamedOnly named_only_;
    std::map<std::string, Target> all_;
    std::string observe_why_;
    std::string default_stays_;
    CpuSet unbound_mask_;    // as of the last look
    bool complete_ = false;  // the last look read all
};

// The target NAME, to be changed; nullptr if there is none.
inline Target* target_of(Targets& targets, const std::string& name) {
    return find_in(targets.all(), name);
}

}  // namespace wq
