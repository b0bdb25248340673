// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "targets/mask_keeper.h"
#include "targets/reconciler.h"
#include "targets/targets.h"

namespace wq {

// Makes the kernel hold what is decided (decide() in targets/target.h) for targets and masks. All but
// restore_all() goes through its Reconciler: policy and ledger here, orders (targets/orders.h), slots
// (targets/slot_writer.h).
class Engine {
  public:
    // TARGETS must outlive it.
    explicit Engine(Targets& targets);
    Engine(const Engine&) = delete;  // the parts have references to each other

    [[nodiscard]] Targets& targets() { return targets_; }
    [[nodiscard]] const Targets& targets() const { return targets_; }
    [[nodiscard]] Reconciler& reconciler() { return reconciler_; }
    [[nodiscard]] const Reconciler& reconciler() const { return reconciler_; }
    [[nodiscard]] const MaskKeeper& masks() const { return masks_; }
    [[nodiscard]] Circumstances circumstances() const;
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const;

    // Targets::set_policy() and changed(), with the masks.
    void set_policy(Policy policy);
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
    // Decides and writes again, because holders changed.
    void write();
    // Puts back all that is ours, and removes the entries.
    void restore_all();
    // Leaves all settings in force, but ends the orders: an order ends when the daemon stops.
    void keep_all();

  private:
    Targets& targets_;
    Reconciler reconciler_;
    MaskKeeper masks_;
    Circumstances decided_;  // of the last decisions
};

}  // namespace wq
