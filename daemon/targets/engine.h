// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/journal.h"
#include "machine/workqueue_fs.h"
#include "targets/decide.h"
#include "targets/inventory.h"
#include "targets/keys.h"
#include "targets/orders.h"
#include "targets/ownership.h"
#include "targets/reconciler.h"

namespace wq {

// A target, and the arm to write to it.
struct Switch {
    std::string name;
    Arm arm;
};
struct Switched {
    Outcome outcome;
    std::uint64_t took = 0;  // us
};

// Connects the parts: it looks (Inventory, Ownership), plans, decides (decide.h) and writes (Reconciler).
// reconcile() does all of this. It may be called at any time, and writes nothing if nothing changed.
//
// engine_slot.cpp has the functions for slots, engine.cpp the rest.
class Engine {
  public:
    struct Edges {
        WorkqueueFs& files;
        OwnedStore& store;
        Log& log;
        std::function<Result<Topology>()> read_topology;
        std::function<std::optional<bool>(const std::string& name)> opted_out;  // as in Inventory::Edges
        const VerdictStore& verdicts;
        std::function<std::int64_t()> now;  // s since 1970
        // The step that follows from plan and ledger (targets/candidates.h). Empty: there is no ledger, and
        // nothing is compared.
        std::function<Step(const StepInput&)> next_step = {};
        std::function<Waiting()> waiting = {};  // asked before each decision; empty: there are no experiments
    };
    Engine(Edges edges, KernelInfo kernel);
    Engine(const Engine&) = delete;  // the parts have references to each other
    Engine& operator=(const Engine&) = delete;

    // Puts a policy into use. Forgets refusals, orders to revert and external writers, so that these targets
    // are decided again.
    void set_policy(Policy policy);
    // Updates which rules have expired at NOW (s since 1970); a rule can also become valid again. The next
    // reconcile() uses the result. Everything else stays as it is.
    void expire(std::int64_t now) { policy_.expire(now); }
    // From now on writes only baselines; WHY is the reason, "" ends this. A policy can ask for the same (mode
    // = "observe").
    void observe(std::string why) { observe_why_ = std::move(why); }
    // Call after an event of the machine: the next reconcile() or look() takes CHANGE into account.
    void changed(Udev::Change change);

    // Looks at every target, plans, writes.
    void reconcile();
    // As reconcile(), but looks only at what is ours, unless more may have changed without an event. Every 16th
    // call in a row is a reconcile().
    void check();
    // Looks only: notices external writers and vanished targets. Writes nothing; record() saves what was
    // noticed.
    void look();
    void record() { (void)ownership_.save(); }
    // Plans, decides and writes again, with what the last look found. Call if the ledger changed, or if other
    // comparisons of it apply now.
    void step_all();
    // Puts back all that is ours, and removes the entries.
    void restore_all();
    // Leaves all settings in force, but ends the orders: an order ends when the daemon stops.
    void keep_all();

    [[nodiscard]] Orders& orders() { return orders_; }
    [[nodiscard]] const Orders& orders() const { return orders_; }

    // For orders. Looks at NAME. Error: why no order for it is accepted now.
    Result<const Target*> look_for_order(const std::string& name);
    void look_at(const std::string& name) { look_at(name, edges_.files.unbound_mask()); }
    void look_and_plan();
    // Sets the holder in the entry of NAME to HOLDER. SCOPE: the scope of a pin. The next write() carries it
    // out.
    void order(const std::string& name, Holder holder, const std::string& scope = "");
    // Decides and writes.
    void write();

    // For slots. Between enter_slot() and leave_slot() the engine leaves the slot's targets to the slot. A
    // call for several targets saves the baseline as often as a call for one.
    // Whether NAME may take part in a slot. Error: why not.
    Status may_try(const std::string& name);
    // Marks NAMES as in a slot, on disk: from now on the restorer puts them back, even if settings are kept.
    // Returns a Status for each of NAMES, in the same order.
    std::vector<Status> enter_slot(const std::vector<std::string>& names);
    // Writes each arm, in this order, even if it is in place already. Any outcome but `done` ends the trial,
    // for that target alone. CLOCK: us, to measure how long a write takes.
    std::vector<Switched> switch_to(const std::vector<Switch>& switches,
                                    const std::function<std::uint64_t()>& clock);
    // Returns NAMES to what policy and ledger decide. Ignores names that are no target.
    void leave_slot(const std::vector<std::string>& names);
    void name_only(NamedOnly what) { named_only_ = std::move(what); }
    [[nodiscard]] const NamedOnly& named_only() const { return named_only_; }
    // Why @default must not be moved now, not even by an order; "" if it may be.
    [[nodiscard]] std::string why_default_stays(const std::string& name) const;
    void measure_by(Measures measures) { keys_.measure_by(std::move(measures)); }
    struct Glance {
        std::string cpus;      // as in VerdictRecord
        std::string word;      // the word of its scope
        bool foreign = false;  // the word is not the one that we wrote last
    };
    // Reads NAME's files now; empty if they cannot be read.
    std::optional<Glance> glance(const std::string& name);

    [[nodiscard]] const std::map<std::string, Target>& targets() const { return targets_; }
    [[nodiscard]] const Inventory& inventory() const { return inventory_; }
    [[nodiscard]] Ownership& ownership() { return ownership_; }
    [[nodiscard]] const Ownership& ownership() const { return ownership_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    // Why nothing is written now; empty if the policy is followed.
    [[nodiscard]] std::string observing() const;
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const;
    [[nodiscard]] std::string summary() const;                               // one line, for STATUS=
    [[nodiscard]] unsigned writes() const { return edges_.files.writes(); }  // to /sys, since the start
    [[nodiscard]] const Reconciler& reconciler() const { return reconciler_; }

  private:
    // ---- looks and plans
    void look_at_topology();
    void look_at_targets();
    [[nodiscard]] bool must_look() const;
    void look_at(const std::string& name, const CpuSet& unbound_mask);
    void keep_unread(Target& target, const Workqueue* seen);
    void notice(Target& target, std::optional<bool> strict);
    void forget(const std::string& name);
    [[nodiscard]] std::vector<Workqueue> targets_before_us() const;
    [[nodiscard]] std::set<std::string> reverted() const;
    [[nodiscard]] const Target* default_target() const;
    void plan_targets();
    void leave_followers();
    void take(PlanLine line);
    void make_step(Target& target);
    // ---- decides
    void refresh_circumstances();
    Wish decide_on(const Target& target);
    // ---- a slot
    Outcome found_foreign(Target& target, const Arm& arm);
    Outcome may_switch(const Switch& to);
    void end_switch(Target& target, const Arm& arm, const Outcome& outcome);

    Edges edges_;
    KernelInfo kernel_;
    Policy policy_;
    Inventory inventory_;
    Ownership ownership_;
    TargetLog log_;
    Reconciler reconciler_;
    Keys keys_;
    Orders orders_;
    NamedOnly named_only_;
    std::string default_stays_;  // why @default must not be moved; "" if it may be
    Circumstances circumstances_;
    std::map<std::string, Target> targets_;
    CpuSet unbound_mask_;  // at the last look at all targets
    unsigned checks_ = 0;  // since then
    std::string observe_why_;
};

}  // namespace wq
