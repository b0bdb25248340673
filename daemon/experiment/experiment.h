// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/bookkeeper.h"

namespace wq {

// The state of a target's comparison, for status, explain and metrics.
struct ComparisonView : Taker {
    Judgement judgement = Judgement::undecided;  // the decision, which stays until the opposite is decided
    Standing standing = {};                      // as of the last pair
    double lost_seconds = 0;                     // of today's budget
    bool measuring = false;                      // takes part in the running slot
    std::optional<Contention> contention = {};
};

// Runs experiments on all busy targets in slots. The loop calls it and passes values; it calls down alone:
//
//   Scheduler (who takes part, with what) -> SlotRun (windows, writes) -> Pair -> Bookkeeper (ledger,
//   verdicts)
//
// Times are us of CLOCK_MONOTONIC unless the comment says s since 1970.
class Experiment {
  public:
    explicit Experiment(ExperimentEdges edges);

    // Candidates that rest may be tried again; a new random delay begins if judge.jitter changed.
    void policy_changed();
    // Called at watchdog ticks. SYSTEM_STATE: of systemd, "running"; "" if it cannot be asked.
    void tick(const std::string& system_state);
    // When to call on_time(); empty while nothing is measured and nothing waits for traffic.
    [[nodiscard]] std::optional<std::uint64_t> due() const { return slot_ ? slot_->due() : look_at_; }
    void on_time();
    // Call when CPUs came or went, or may have: the pairs of the running slot do not count.
    void cpus_changed();
    // Call after each Engine::reconcile(): targets that cannot be compared any more leave the slot, and
    // orders that cannot be carried out any more end.
    void check();
    // `wq-tunectl compare`: SCOPE (if empty: what comes next), at once, also outside judge.hours.
    Status order(const std::string& name, const std::string& scope);
    // Ends the running slot, and saves the ledger. A window that this cuts off counts against its arm.
    void cancel_all(const std::string& why);
    // While paused no slot begins, except for orders. The running slot comes to its end.
    void pause(bool paused) {
        host_.seen.paused = paused;
        if (!slot_) look_at_ = edges_.clock.now();  // `status` says so
    }
    [[nodiscard]] bool is_paused() const { return host_.seen.paused; }

    [[nodiscard]] bool is_measuring() const { return slot_ != nullptr; }
    // Whether memory should be locked: from the begin of a slot until no more slots follow.
    [[nodiscard]] bool holds_memory() const { return held_; }
    [[nodiscard]] std::optional<ComparisonView> view_of(const std::string& target) const;
    [[nodiscard]] ExperimentTotals totals() const { return books_.totals(); }
    [[nodiscard]] const Ledger& ledger() const { return edges_.ledger.ledger(); }
    // Why no slot begins, one reason for all targets; "" if a slot may begin.
    [[nodiscard]] std::string why_no_slot() const;

  private:
    [[nodiscard]] Scheduler scheduler() const;
    void measure_by(const std::string& lacks);
    Result<bool> look_at_traffic();
    void look();
    void begin_slot(std::vector<Taker> takers);
    void after_act(const std::vector<SlotRun::Left>& left, const std::vector<SlotRun::Done>& done = {});
    void idle();

    ExperimentEdges edges_;
    Bookkeeper books_;
    Counting counting_;  // cannot be copied or moved, so this cannot, either
    HostWatch host_;
    std::unique_ptr<SlotRun> slot_;
    std::optional<std::uint64_t> look_at_;
    bool held_ = false;
};

}  // namespace wq
