// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/journal.h"
#include "machine/host_facts.h"
#include "machine/workqueue_fs.h"
#include "owned/mask_store.h"
#include "owned/mask_writer.h"
#include "policy/policy.h"
#include "targets/target.h"

namespace wq {

// A mask that a rule asks for, or that holds something of ours, as of the last look. Its states are
// as-planned, set, waiting, leave, external, unsupported and quarantined.
struct Mask : Shown {
    MaskFile now;
    bool unread = false;  // it could not be read at the last look; the fields are older
    MaskWish wish;
    CpuSet planned;  // empty: no mask is wished for, or no CPU of it is left

    std::optional<MaskFile> last;   // at the previous look, to notice external writers without an entry
    std::optional<bool> opted_out;  // by udev; empty: not known yet
    std::optional<CpuSet> refused;  // failed for good; not tried again until a reload
    Shown why_refused;
    unsigned failures = 0;  // consecutive transient failures
    unsigned stuck = 0;     // consecutive failures to put the baseline back
    std::string failed;     // text of the last failure of either kind

    void show(Shown what) { static_cast<Shown&>(*this) = std::move(what); }
};

// Sets masks as the policy asks (cpumask of [[workqueue]] and [default_mask]), follows changes, and puts the
// baselines back. Masks are never compared. A fixed mask is written as it is; but from the mask of all
// unbound workqueues the currently isolated CPUs are removed first, because the kernel does not leave them
// out of a write (owned/mask_writer.h). `housekeeping` means the possible CPUs without the currently isolated
// ones. If no CPU is left, nothing is written.
class MaskKeeper {
  public:
    struct Edges {
        MaskFiles& files;
        MaskStore& store;
        Log& log;
        std::function<HostCpus()> cpus;  // the possible ones, and the currently isolated ones
        std::function<std::optional<bool>(const std::string& name)> opted_out;  // as in Inventory::Edges
    };
    // All that EDGES refers to must outlive the MaskKeeper. The store has been loaded; if that failed,
    // nothing will be written.
    explicit MaskKeeper(Edges edges);

    // Call after a reload: forgets refusals and external writers.
    void start_over();
    // Call when udev has processed workqueues again.
    void changed();
    // Looks, and writes what POLICY asks for. OBSERVING: why nothing may be written, "" if it may; if not,
    // all baselines are put back. Does nothing if POLICY asks for no mask and none was written.
    void reconcile(const Policy& policy, const std::string& observing);
    // Looks only. record() saves what was noticed.
    void look(const Policy& policy, const std::string& observing);
    void record() { (void)edges_.store.save(); }
    // Puts back all that is ours, and removes the entries.
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
    std::string unsaved_;  // why the announcement could not be saved
};

}  // namespace wq
