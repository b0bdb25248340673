// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/journal.h"
#include "base/result.h"
#include "machine/workqueue_fs.h"
#include "targets/decide.h"
#include "targets/inventory.h"
#include "targets/reconciler.h"

namespace wq {

// What is asked of a target. Each asks for more than the one before.
enum class Use : std::uint8_t {
    revert,   // by an order, to its baseline
    pin,      // by an order, to a scope
    compare,  // in a slot
};

// What is known of the targets: looks at them, plans (plan/plan.h) and decides (decide.h). Writes nothing:
// the Engine does.
class Targets {
  public:
    struct Edges {
        WorkqueueFs& files;
        OwnedStore& store;  // has been loaded, and nobody else changes it meanwhile
        Log& log;
        std::function<Result<Topology>()> read_topology;
        // Whether a udev rule opts the workqueue out (WQ_TUNED_IGNORE). Empty: not known yet, ask again
        // later.
        std::function<std::optional<bool>(const std::string& name)> opted_out;
        const VerdictStore& verdicts;
        std::function<std::int64_t()> now;  // s since 1970
        // The step that follows from plan and ledger (targets/step.h). Empty: there is no ledger, and
        // nothing is compared.
        std::function<Step(const StepInput&)> next_step = {};
        std::function<Waiting()> waiting = {};  // asked before each decision; empty: there are no experiments
    };

    [[nodiscard]] const std::map<std::string, Target>& targets() const { return targets_; }
    [[nodiscard]] const Inventory& inventory() const { return inventory_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    [[nodiscard]] const NamedOnly& named_only() const { return named_only_; }
    [[nodiscard]] const Reconciler& reconciler() const { return reconciler_; }
    [[nodiscard]] unsigned writes() const { return edges_.files.writes(); }  // to /sys, since the start
    // Why nothing is written now; empty if the policy is followed.
    [[nodiscard]] std::string observing() const;
    // The gate. Error: why no order and no slot may use TARGET like this, whatever its plan.
    [[nodiscard]] Status may(const Target& target, Use use) const;
    // What the orders to revert do to @default, for people; "" if nothing.
    [[nodiscard]] std::string note() const;
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const;
    [[nodiscard]] std::string summary() const;  // one line, for STATUS=

  protected:
    Targets(Edges edges, KernelInfo kernel);
    Targets(const Targets&) = delete;  // the parts have references to each other

    void look_and_plan();
    void look_at(const std::string& name, const CpuSet& unbound_mask);
    void plan();
    void make_step(Target& target);
    [[nodiscard]] Circumstances circumstances() const;
    Wish decide_on(const Target& target, const Circumstances& all);

    Edges edges_;
    KernelInfo kernel_;
    Policy policy_;
    Inventory inventory_;
    TargetLog log_;
    Reconciler reconciler_;
    Keys keys_;
    NamedOnly named_only_;
    std::map<std::string, Target> targets_;
    std::string observe_why_;

  private:
    void leave_followers();
    [[nodiscard]] std::string why_default_stays() const;

    std::string default_stays_;  // why @default must not be moved; "" if it may be
};

}  // namespace wq
