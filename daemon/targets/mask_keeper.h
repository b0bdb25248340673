// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "machine/host_facts.h"
#include "machine/workqueue_fs.h"
#include "owned/owned.h"
#include "policy/policy.h"
#include "targets/reconciler.h"
#include "targets/target.h"

namespace wq {

// A mask that a rule asks for, or that holds something of ours, as of the last look.
struct Mask : Managed {
    std::string target;  // kDefaultMask, or a workqueue
    MaskFile now;
    std::string unread;  // why it could not be read at the last look; the fields are older
    MaskWish wish;
    CpuSet planned;                 // empty: no mask is wished for, or no CPU of it is left
    std::optional<bool> opted_out;  // by udev; empty: not known yet
    bool observed = false;          // nothing may be written but the baseline

    [[nodiscard]] const std::string& name() const override { return target; }
    [[nodiscard]] Knob file() const override { return Knob::mask; }
    [[nodiscard]] Values values() const override { return {now.text, {}}; }
    [[nodiscard]] Owned entry_now() const override { return {target, now.inode, {Knob::mask, now.text}}; }
    [[nodiscard]] bool is_managed() const override {
        return !observed && opted_out == false && now.untouchable.empty();
    }
    void see(const Look& look) override;
    void wrote(const Values& /*values*/) override {}  // it is read again
};

// Sets masks as the policy asks (cpumask of [[workqueue]] and [default_mask]), follows changes, and puts the
// baselines back. A fixed mask is written as it is; but from the mask of all unbound workqueues the isolated
// CPUs are removed first, because the kernel does not leave them out of a write (machine/workqueue_fs.h).
// `housekeeping`: the possible CPUs that are not isolated. If no CPU is left, nothing is written.
class MaskKeeper {
  public:
    // All arguments must outlive the MaskKeeper.
    MaskKeeper(WorkqueueFiles& files, OwnedStore& store, TargetLog& log, Reconciler& reconciler)
        : files_(files), store_(store), log_(log), reconciler_(reconciler) {}

    // Call after a reload: forgets refusals and external writers.
    void start_over();
    // Call when udev has processed workqueues again.
    void changed();
    // OBSERVING: why all baselines are put back, "" if they are not. CPUS: the possible and isolated ones.
    void look(const Policy& policy, const std::string& observing, const std::function<HostCpus()>& cpus,
              const OptedOut& opted_out);
    // Writes what the last look asks for.
    void reconcile();
    // Whether the masks that look() would find, and the host's CPUs, are as at the last look.
    [[nodiscard]] bool is_as_seen(const std::string& observing, const std::function<HostCpus()>& cpus) const;

    [[nodiscard]] const std::map<std::string, Mask>& masks() const { return masks_; }

  private:
    [[nodiscard]] std::map<std::string, MaskWish> wishes(const Policy& policy);
    void look_at(const std::string& name, const MaskWish& wish, const OptedOut& opted_out);
    void forget(const std::string& name);
    [[nodiscard]] Wish decide(const Mask& mask) const;

    WorkqueueFiles& files_;
    OwnedStore& store_;
    TargetLog& log_;
    Reconciler& reconciler_;
    std::map<std::string, Mask> masks_;
    HostCpus cpus_;
    std::string observing_;
};

}  // namespace wq
