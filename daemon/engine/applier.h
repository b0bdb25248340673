// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/decide.h"
#include "engine/ownership.h"
#include "engine/scope_writer.h"
#include "engine/target_log.h"

namespace wq {

// Carries out what was decided about one target, and records what came of it: in the target, in its baseline
// entry and in the journal. Who calls it saves the entries between announce() and the rest.
class Applier {
  public:
    // All outlive it. STORE is the one of OWNERSHIP.
    Applier(ScopeFiles& files, BaselineStore& store, Ownership& ownership, TargetLog& log)
        : files_(files), ownership_(ownership), log_(log), writer_(files, store) {}

    // What WISH has written is added to the claim. GOES_BACK: the baseline is put back.
    void announce(Target& target, const Wish& wish, bool goes_back);
    void carry_out(Target& target, const Wish& wish);
    // Puts the baseline back, if we have a hand in the target. After that its entry is kept only for an
    // order.
    void put_back(Target& target);
    // An external writer has the word or the strictness: the other one goes back, if it is ours.
    void put_half_back(Target& target);
    void leave_to_writer(Target& target, const std::string& text);

    // For a slot: writes ARM even if it is in place. It was announced. CLOCK: us; TOOK: for how long.
    Outcome rewrite(const Target& target, const Arm& arm, const std::function<std::uint64_t()>& clock,
                    std::uint64_t& took);
    // WORD was not written to TARGET.
    void take_failure(Target& target, const std::string& word, const Outcome& outcome);

    // Since the start: tries to set a target, or to put it back, that the kernel refused or could not do; us
    // that writes took; whether the kernel stored the beginning of a scope's name for the name.
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
