// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/journal.h"
#include "engine/mask_store.h"
#include "engine/mask_writer.h"
#include "engine/target.h"
#include "engine/target_log.h"
#include "kernel/mask_files.h"
#include "model/host_facts.h"
#include "model/policy.h"

namespace wq {

// A mask that a rule asks for, or that holds something of ours, as it was last looked at. Its states are
// as-planned, applied, waiting, leave, external, unsupported and quarantined.
struct Mask : Shown {
    MaskFile now;
    bool unread = false;  // it could not be read at the last look, and is as it was before
    MaskWish wish;
    CpuSet planned;  // empty: none, or no CPU is left of what is wished for

    std::optional<MaskFile> last;   // at the look before, to notice external writers without an entry
    std::optional<bool> opted_out;  // by udev; empty: it has not said yet
    std::optional<CpuSet> refused;  // failed for good, and is not tried again until a reload
    Shown why_refused;
    unsigned failures = 0;  // transient ones in a row
    unsigned stuck = 0;     // baselines refused in a row
    std::string failed;     // the last of either

    void show(Shown what) { static_cast<Shown&>(*this) = std::move(what); }
};

// Masks: what the policy asks for, followed live, and put back (cpumask of [[workqueue]] and [default_mask]).
// Masks are never compared. What is fixed is written as it is; the mask of all unbound workqueues without
// what is isolated now, since the kernel would have a write include it (kernel/mask_files.h). `housekeeping`
// is the possible CPUs without what is isolated now. Where nothing is left of a mask, nothing is written.
class MaskKeeper {
  public:
    struct Edges {
        MaskFiles& files;
        MaskStore& store;
        Log& log;
        std::function<HostCpus()> cpus;  // the possible ones, and what is isolated now
        std::function<std::optional<bool>(const std::string& name)> opted_out;  // as Inventory has it
    };
    // What is referred to outlives it. The store is loaded; if that failed nothing will be written.
    explicit MaskKeeper(Edges edges);

    // A reload: what was refused or external is looked at anew.
    void start_over();
    // udev has processed workqueues anew.
    void changed();
    // Looks, and writes what follows. OBSERVING: why nothing may be written, "" if it may; then everything
    // goes back. Does nothing where POLICY asks for no mask, and none was written.
    void reconcile(const Policy& policy, const std::string& observing);
    // Looks only. record() keeps what was noticed.
    void look(const Policy& policy, const std::string& observing);
    void record() { (void)edges_.store.save(); }
    // Puts everything back that is ours, and forgets it.
    void restore_all();
    // Leaves everything in force.
    void keep_all();

    [[nodiscard]] const std::map<std::string, Mask>& masks() const { return masks_; }
    [[nodiscard]] const MaskEntry* entry(const std::string& name) const { return edges_.store.find(name); }
    // Whether a transient failure waits for another try.
    [[nodiscard]] bool wants_retry() const;

  private:
    [[nodiscard]] std::map<std::string, MaskWish> wishes(const Policy& policy);
    [[nodiscard]] bool has_mask(const std::string& name) const;
    void look_at(const std::string& name, const MaskWish& wish);
    void not_read(const std::string& name, const MaskWish& wish, const Error& error);
    void forget(const std::string& name);
    void notice(const std::string& name, Mask& mask);
    void leave_to_writer(const std::string& name, Mask& mask);
    void ask_udev(const std::string& name, Mask& mask) const;
    [[nodiscard]] CpuSet planned(const std::string& name, const MaskWish& wish) const;
    [[nodiscard]] Shown judge(const std::string& name, const Mask& mask) const;
    [[nodiscard]] bool is_to_write(const std::string& name, const Mask& mask) const;
    [[nodiscard]] bool wants_baseline(const std::string& name, const Mask& mask) const;
    [[nodiscard]] bool goes_back(const std::string& name, const Mask& mask) const;
    void announce();
    void carry_out(const std::string& name, Mask& mask);
    void wrote(const std::string& name, Mask& mask, std::uint64_t took);
    void take_failure(const std::string& name, Mask& mask, const Outcome& outcome);
    void refuse(const std::string& name, Mask& mask, State as, const Outcome& outcome);
    void put_back(const std::string& name, Mask& mask);
    void look_again(const std::string& name, Mask& mask);
    void drop_settled();

    Edges edges_;
    MaskWriter writer_;
    TargetLog log_;
    std::map<std::string, Mask> masks_;
    HostCpus cpus_;
    std::string observing_;
    std::string unsaved_;  // why nothing can be announced
};

}  // namespace wq
