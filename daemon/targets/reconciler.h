// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "owned/writer.h"
#include "targets/decide.h"
#include "targets/ownership.h"
#include "targets/target.h"

namespace wq {

struct Job {
    Managed* item;
    Wish wish;
};

// Carries out wishes about targets and masks, and records the results in the items, in their entries and in
// the journal.
class Reconciler {
  public:
    // All arguments must outlive the Reconciler. STORE is the store that OWNERSHIP uses.
    Reconciler(WorkqueueFiles& files, OwnedStore& store, Ownership& ownership, TargetLog& log)
        : files_(files), ownership_(ownership), log_(log), writer_(files, store) {}

    // Shows and carries out JOBS, in this order. Announces all writes on disk before the first one, and
    // settles them on disk after the last one: two saves, also for a thousand targets. OBSERVING: why nothing
    // may be written but baselines; "" if it may.
    void run(std::vector<Job>& jobs, const std::string& observing);
    // For an item whose word or strictness an external writer wrote: puts the other one back, if it is ours.
    void put_half_back(Managed& item);
    // An external writer wrote TEXT to ITEM.
    void leave_to_writer(Managed& item, const std::string& text);

    // For a slot: writes ARM even if it is in place already. The caller has announced it. CLOCK: us. TOOK:
    // duration in us.
    Outcome rewrite(const Target& target, const Arm& arm, const std::function<std::uint64_t()>& clock,
                    std::uint64_t& took);
    // Handles an OUTCOME other than `done` of writing WORD to ITEM.
    void take_failure(Managed& item, const std::string& word, const Outcome& outcome);

    // Why the last announcement could not be saved; "" if it could.
    [[nodiscard]] const std::string& unsaved() const { return unsaved_; }
    // Since the start: failed attempts to set a target or to put its baseline back; time that writes took, in
    // us; whether the kernel stored only the beginning of a scope's name.
    [[nodiscard]] unsigned write_errors() const { return write_errors_; }
    [[nodiscard]] std::uint64_t write_time() const { return write_time_; }
    [[nodiscard]] bool names_cut_short() const { return names_cut_short_; }

  private:
    [[nodiscard]] bool goes_back(const Managed& item, const Wish& wish, const std::string& observing) const;
    void announce(Managed& item, const Wish& wish, bool goes_back);
    void carry_out(Managed& item, const Wish& wish);
    void put_back(Managed& item);
    void wrote(Managed& item, const Wish& wish, std::uint64_t took);
    void not_put_back(Managed& item, const Outcome& outcome);
    void look_again(Managed& item);
    void drop_settled(const Managed& item);
    void refuse(Managed& item, State as, const std::string& word, const std::string& reason, int code);

    WorkqueueFiles& files_;
    Ownership& ownership_;
    TargetLog& log_;
    OwnedWriter writer_;
    std::string unsaved_;
    unsigned write_errors_ = 0;
    std::uint64_t write_time_ = 0;  // us
    bool names_cut_short_ = false;
};

}  // namespace wq
