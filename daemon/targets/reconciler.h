// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "owned/writer.h"
#include "targets/target.h"

namespace wq {

struct Job {
    Managed* item;
    Wish wish;
};

// Carries out wishes about targets and masks; results go into the items, their entries and the journal.
class Reconciler {
  public:
    // All arguments must outlive the Reconciler. STORE has the entries of all items.
    Reconciler(WorkqueueFiles& files, OwnedStore& store, TargetLog& log)
        : files_(files), store_(store), log_(log), writer_(files, store) {}

    // Shows and carries out JOBS, in this order. Announces all writes on disk before the first one, and
    // settles them after the last one: two saves in all. OBSERVING: why only baselines are written; "" if
    // not.
    void run(std::vector<Job>& jobs, const std::string& observing);
    // For an item whose word or strictness an external writer wrote: puts the other one back, if it is ours.
    void put_half_back(Managed& item);

    // For a slot: writes ARM even if it is in place already. The caller has announced it. CLOCK: us.
    Outcome rewrite(const Target& target, const Arm& arm, const std::function<std::uint64_t()>& clock);
    // Handles an OUTCOME other than `done` of writing WORD to ITEM.
    void take_failure(Managed& item, const std::string& word, const Outcome& outcome);

    // Why the last announcement could not be saved; "" if it could.
    [[nodiscard]] const std::string& unsaved() const { return unsaved_; }
    struct Counts {
        unsigned errors = 0;     // failed attempts to set a target or to put its baseline back
        std::uint64_t time = 0;  // that writes took, in us
    };
    [[nodiscard]] const Counts& counts() const { return counts_; }  // since the start

  private:
    void announce(Managed& item, const Wish& wish, bool goes_back);
    void carry_out(Managed& item, const Wish& wish);
    void put_back(Managed& item);
    void wrote(Managed& item, const Wish& wish, std::uint64_t took);
    void failed_to_put_back(Managed& item, const std::string& text, int code);
    void refuse(Managed& item, State as, const std::string& word, const std::string& reason, int code);

    WorkqueueFiles& files_;
    OwnedStore& store_;
    TargetLog& log_;
    OwnedWriter writer_;
    std::string unsaved_;
    Counts counts_;
};

}  // namespace wq
