// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "owned/scope_writer.h"
#include "targets/decide.h"
#include "targets/ownership.h"
#include "targets/target.h"

namespace wq {

// Carries out the decision about one target, and records the result in the target, in its baseline entry and
// in the journal. The caller saves the entries after announce() and before the other calls.
class Applier {
  public:
    // All arguments must outlive the Applier. STORE is the store that OWNERSHIP uses.
    Applier(ScopeFiles& files, BaselineStore& store, Ownership& ownership, TargetLog& log)
        : files_(files), ownership_(ownership), log_(log), writer_(files, store) {}

    // Adds what WISH is going to write to the claim. GOES_BACK: the baseline is going to be put back.
    void announce(Target& target, const Wish& wish, bool goes_back);
    void carry_out(Target& target, const Wish& wish);
    // Puts the baseline back, if the target has an entry. After that the entry is kept only if it has an
    // order.
    void put_back(Target& target);
    // For a target whose word or strictness an external writer wrote: puts the other one back, if it is ours.
    void put_half_back(Target& target);
    void leave_to_writer(Target& target, const std::string& text);

    // For a slot: writes ARM even if it is in place already. The caller has announced it. CLOCK: us. TOOK:
    // duration in us.
    Outcome rewrite(const Target& target, const Arm& arm, const std::function<std::uint64_t()>& clock,
                    std::uint64_t& took);
    // Handles an OUTCOME other than `done` of writing WORD to TARGET.
    void take_failure(Target& target, const std::string& word, const Outcome& outcome);

    // Since the start: failed attempts to set a target or to put its baseline back; time that writes took, in
    // us; whether the kernel stored only the beginning of a scope's name.
    [[nodiscard]] unsigned write_errors() const { return write_errors_; }
    [[nodiscard]] std::uint64_t write_time() const { return write_time_; }
    [[nodiscard]] bool names_cut_short() const { return names_cut_short_; }

  private:
    void wrote(Target& target, const Wish& wish, std::uint64_t took);
    void note_others(const Target& target, const Wish& wish, Outcome& outcome);
    void not_put_back(Target& target, const Outcome& outcome);
    void settle_entry(Target& target, const Outcome& outcome);
    void look_again(Target& target);
    void refuse(Target& target, State as, const std::string& word, const std::string& reason, int code);

    ScopeFiles& files_;
    Ownership& ownership_;
    TargetLog& log_;
    ScopeWriter writer_;
    unsigned write_errors_ = 0;
    std::uint64_t write_time_ = 0;  // us
    bool names_cut_short_ = false;
};

}  // namespace wq
