// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/journal.h"
#include "base/result.h"
#include "machine/workqueue_fs.h"
#include "targets/conditions.h"
#include "targets/keys.h"
#include "targets/mask_keeper.h"
#include "targets/reconciler.h"
#include "targets/target.h"

namespace wq {

// What is asked of a target. Each asks for more than the one before.
enum class Use : std::uint8_t {
    revert,   // by an order, to its baseline
    pin,      // by an order, to a scope
    compare,  // in a slot
};

// Why a target may not be used.
struct No {
    std::string why;
    int code = EPERM;
    bool ours = false;  // the operator or the policy causes it, and nobody else
};

// What is known of the targets: looks, plans (plan/plan.h), decides. Writes nothing to /sys: the Engine does.
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

    [[nodiscard]] const std::map<std::string, Target>& targets() const { return targets_; }
    // nullptr if there is none.
    [[nodiscard]] const Target* find(const std::string& name) const {
        const auto found = targets_.find(name);
        return found == targets_.end() ? nullptr : &found->second;
    }
    [[nodiscard]] const MaskKeeper& masks() const { return masks_; }
    [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const Policy& policy() const { return policy_; }
    [[nodiscard]] const KernelInfo& kernel() const { return kernel_; }
    [[nodiscard]] const NamedOnly& named_only() const { return named_only_; }
    [[nodiscard]] const Reconciler& reconciler() const { return reconciler_; }
    [[nodiscard]] unsigned writes() const { return edges_.files.writes(); }  // to /sys, since the start
    // Why nothing is written now; empty if the policy is followed.
    [[nodiscard]] std::string observing() const;
    // The gate: why no order and no slot may use TARGET like this, whatever its plan. ARMS: to be compared.
    [[nodiscard]] std::optional<No> why_not(const Target& target, Use use, const Arms* arms = nullptr) const;
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
    // Whether what we own, and the mask of all unbound workqueues, is as at the last look, which read all.
    [[nodiscard]] bool is_as_seen() const;

    Edges edges_;
    KernelInfo kernel_;
    Policy policy_;
    Snapshot snapshot_;
    TargetLog log_;
    Reconciler reconciler_;
    MaskKeeper masks_;
    Keys keys_;
    NamedOnly named_only_;
    std::map<std::string, Target> targets_;
    std::string observe_why_;
    CpuSet unbound_mask_;    // as of the last look
    bool complete_ = false;  // the last look read all
    Circumstances decided_;  // of the last decisions

  private:
    void leave_followers();
    [[nodiscard]] bool means_another(const Arms& arms) const;

    std::string default_stays_;  // why @default must not be moved; "" if it may be
};

// Writes (Reconciler) what is decided: as policy and ledger say, by orders, and for slots.
class Engine : public Targets {
  public:
    Engine(Edges edges, KernelInfo kernel) : Targets(std::move(edges), std::move(kernel)) {}

    // Forgets refusals, orders to revert and external writers, so that these targets are decided again.
    void set_policy(Policy policy);
    // Policy::expire(), for the next reconcile().
    bool expire(std::int64_t now) { return policy_.expire(now); }
    // From now on writes only baselines; WHY is the reason, "" ends this.
    void observe(std::string why) { observe_why_ = std::move(why); }
    void name_only(NamedOnly what) { named_only_ = std::move(what); }
    void measure_by(Measures measures) { keys_.measure_by(std::move(measures)); }
    // Call after an event of the machine: the next reconcile() or look() takes CHANGE into account.
    void changed(Udev::Change change);

    // Looks at every mask and target, plans, decides, writes: nothing if nothing changed.
    void reconcile();
    // The same at a tick of the watchdog, but looks at what we own alone as long as that is as it was. WHOLE:
    // looks at every target.
    void tick(bool whole);
    // Looks only: notices external writers and vanished targets. Writes nothing.
    void look();
    // Plans, decides and writes again with what the last look found, because the ledger changed.
    void step_all();
    // Puts back all that is ours, and removes the entries.
    void restore_all();
    // Leaves all settings in force, but ends the orders: an order ends when the daemon stops.
    void keep_all();

    // An operator's orders, which survive a restart. Error: why it could not be carried out; after pin() the
    // earlier order then stays in force.
    Status pin(const std::string& name, const std::string& scope);
    Status unpin(const std::string& name);
    Status revert(const std::optional<std::string>& name);       // empty: all targets
    [[nodiscard]] unsigned reverts() const { return reverts_; }  // of settings, since the start

    // Looks at NAME alone, and returns why it may not be used like this.
    std::optional<No> ask(const std::string& name, Use use);

    // For slots. Between enter_slot() and leave_slot() the engine leaves the slot's targets to the slot.
    // Marks NAMES as in a slot, on disk: the restorer puts them back whatever is kept. A Status each.
    std::vector<Status> enter_slot(const std::vector<std::string>& names);
    // Writes an arm for each target, in this order, even if it is in place already. Any outcome but `done`
    // ends the slot for that target alone. CLOCK: us.
    std::vector<Outcome> switch_to(const std::vector<std::pair<std::string, Arm>>& switches,
                                   const std::function<std::uint64_t()>& clock);
    // Returns NAMES to what policy and ledger decide. Ignores names that are no target.
    void leave_slot(const std::vector<std::string>& names);

  private:
    [[nodiscard]] Target* target_of(const std::string& name) { return const_cast<Target*>(find(name)); }
    void write();
    Outcome may_switch(Target* target, const Arm& arm);
    void save();

    unsigned reverts_ = 0;
};

}  // namespace wq
