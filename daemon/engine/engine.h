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
#include "engine/applier.h"
#include "engine/decide.h"
#include "engine/inventory.h"
#include "engine/keys.h"
#include "engine/orders.h"
#include "engine/ownership.h"
#include "kernel/workqueue_fs.h"

namespace wq {

// A target, and the arm that it is to hold.
struct Switch {
    std::string name;
    Arm arm;
};
struct Switched {
    Outcome outcome;
    std::uint64_t took = 0;  // us
};

// Joins the parts: it looks (Inventory, Ownership), plans, decides (decide.h) and writes (Applier).
// reconcile() does all of it. It may be called at any time, and does nothing where nothing changed.
//
// engine_slot.cpp has what a slot asks for, engine.cpp the rest.
class Engine {
  public:
    struct Edges {
        WorkqueueFs& files;
        BaselineStore& store;
        Log& log;
        std::function<Result<Topology>()> read_topology;
        std::function<std::optional<bool>(const std::string& name)> opted_out;  // as Inventory has it
        const VerdictStore& verdicts;
        std::function<std::int64_t()> now;  // s since 1970
        // What the ledger makes of a plan (engine/candidates.h). Empty: nothing is known, nothing is
        // compared.
        std::function<Step(const StepInput&)> next_step = {};
    };
    Engine(Edges edges, KernelInfo kernel);
    Engine(const Engine&) = delete;  // the parts refer to each other
    Engine& operator=(const Engine&) = delete;

    // Takes a policy into use: what was refused, reverted or external is looked at anew.
    void set_policy(Policy policy);
    // Rules of the policy end, or begin again, by their day; the next reconcile() plans by it. Nothing else
    // is looked at anew. NOW: s since 1970.
    void expire(std::int64_t now) { policy_.expire(now); }
    // Writes nothing but baselines from now on, for WHY; "" lifts it. Policies may say so as well (mode =
    // "observe").
    void observe(std::string why) { observe_why_ = std::move(why); }
    // Something happened on the machine: the next reconcile() or look() looks at it.
    void changed(Udev::Change change);

    // Looks at every target, plans, writes.
    void reconcile();
    // Looks only: notices external writers and vanished targets. Writes nothing; record() keeps what was
    // noticed.
    void look();
    void record() { (void)ownership_.save(); }
    // Plans and decides again, by what was last seen, and writes: the ledger's comparisons may be others by
    // now.
    void step_all();
    // Puts everything back that is ours, and forgets it.
    void restore_all();
    // Leaves everything in force, but ends the orders: they last until the daemon stops.
    void keep_all();

    [[nodiscard]] Orders& orders() { return orders_; }
    [[nodiscard]] const Orders& orders() const { return orders_; }

    // What orders ask for. Looks at NAME; the error says why nobody may give an order about it now.
    Result<const Target*> look_for_order(const std::string& name);
    void look_at(const std::string& name) { look_at(name, edges_.files.unbound_mask()); }
    void look_and_plan();
    // HOLDER (SCOPE: of a pin) is what the entry of NAME says from now on, and write() follows it.
    void order(const std::string& name, Holder holder, const std::string& scope = "");
    // Decides, and writes what follows from it.
    void write();

    // What a slot asks for. Between begin_trials() and end_trials() its targets are left to it. Several
    // targets cost one save of the baseline where one does.
    // Whether NAME may go on trial by an operator's order; the error says what stands against it.
    Status may_try(const std::string& name);
    // From here on a process that finds a target puts it back, even if settings are kept. A Status for each
    // of NAMES, in their order.
    std::vector<Status> begin_trials(const std::vector<std::string>& names);
    // Writes each arm, in this order, even if it is in place. Every outcome but `done` ends the trial for
    // that target alone. CLOCK: us, for how long a write takes.
    std::vector<Switched> switch_to(const std::vector<Switch>& switches,
                                    const std::function<std::uint64_t()>& clock);
    // Back to what policy and ledger say; nothing for those that are not on trial.
    void end_trials(const std::vector<std::string>& names);
    void end_trial(const std::string& name) { end_trials({name}); }
    // Why no pair is measured, shown where a target waits for one.
    void explain_waiting(std::string why) { circumstances_.waiting_why = std::move(why); }
    // The targets whose dense comparisons are measured now, slot by slot: these are in state `trial`.
    void set_compared(std::set<std::string> names) { circumstances_.compared = std::move(names); }
    void name_only(NamedOnly what) { circumstances_.named_only = std::move(what); }
    [[nodiscard]] const NamedOnly& named_only() const { return circumstances_.named_only; }
    // Why TARGET is neither written nor compared on this host; "" if it is.
    [[nodiscard]] std::string why_left_alone(const Target& target) const {
        return named_only().why(policy_, target.now.kind, target.now.name);
    }
    void measure_by(Measures measures) { keys_.measure_by(std::move(measures)); }
    struct Glance {
        std::string cpus;      // as VerdictKey has them
        std::string word;      // its scope
        bool foreign = false;  // the word is not the one that we wrote last
    };
    // NAME's files as they are now; empty if they cannot be read.
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
    [[nodiscard]] const Applier& applier() const { return applier_; }

  private:
    // ---- looks and plans
    void look_at_topology();
    void look_at_targets();
    void look_at(const std::string& name, const CpuSet& unbound_mask);
    void keep_unread(Target& target, const Workqueue* seen);
    void notice(Target& target, std::optional<bool> strict);
    void forget(const std::string& name);
    [[nodiscard]] std::vector<Workqueue> targets_before_us() const;
    void plan_targets();
    void take(PlanLine line);
    void make_step(Target& target);
    [[nodiscard]] bool has_no_effect(const Target& target) const;
    // ---- decides
    void refresh_circumstances();
    Wish decide_on(const Target& target);
    [[nodiscard]] bool goes_back(const Target& target, const Wish& wish) const;
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
    Applier applier_;
    Keys keys_;
    Orders orders_;
    Circumstances circumstances_;
    std::map<std::string, Target> targets_;
    std::string observe_why_;
};

}  // namespace wq
