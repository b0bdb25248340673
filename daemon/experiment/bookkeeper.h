// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/verdicts.h"
#include "experiment/slot.h"

namespace wq {

// Totals of all experiments since the start of the daemon.
struct ExperimentTotals {
    std::uint64_t slots = 0;
    std::uint64_t pairs = 0;
    std::uint64_t pairs_dropped = 0;
    std::uint64_t windows_lost = 0;
    std::uint64_t improved = 0, regressed = 0;  // verdicts
    std::uint64_t undecided = 0;   // comparisons that max_pairs pairs, or stuck work, did not decide
    std::uint64_t taken_back = 0;  // by the watch
    std::uint64_t rests = 0;       // candidates that began to rest
    std::uint64_t cut_off = 0;     // targets that left a slot before its end
    double lost_today = 0;         // s that all targets lost to experiments today (UTC)
};

// What the last pairs of TAKER's target showed about the lock, the pools and the kworkers; empty without any.
std::optional<Contention> contention_of(const OrderBook& book, const Ledger& ledger, const Taker& taker);

// What a pair, or the end of a comparison without one, means: evidence in the ledger, a verdict in the
// history, a rest or an ended order in the order book.
class Bookkeeper {
  public:
    // Reads the ledger, and counts the lost windows of a slot that a crash cut off.
    explicit Bookkeeper(const ExperimentEdges& edges);

    [[nodiscard]] ExperimentTotals totals() const;
    // Whether a verdict or a rest came since the last call: other arms may have to be in force.
    [[nodiscard]] bool turned() { return std::exchange(turned_, false); }

    void begun(const std::vector<Member>& members);
    void cannot_begin(const Member& member, const Error& why);
    void left(const SlotRun::Left& left);
    void take(const SlotRun::Done& done, const SlotTimes& times);
    // Reports that the ordered comparison ended without a verdict, and ends the order.
    void give_up(const Member& member, const std::string& why);
    // Writes the verdicts since the last call. Takes time: not before the targets are as the ledger decides.
    void write();

  private:
    void lose_window(const LedgerEntry& known, Side side);
    void count_cut_off(const Coins& coins);
    bool is_stuck(const Member& member, const PairResult& result);
    void drop(const Member& member, const std::string& why);
    void pay(const Member& member, const PairEvidence& pair, double in_place);
    void use(const SlotRun::Done& done, const PairEvidence& evidence);
    void be_cautious(const Member& member, const LedgerEntry& before, const PairEvidence& evidence);
    void rest(const Member& member, std::uint64_t time, const std::string& why, bool suspect = false);
    void turn(const Member& member, const LedgerEntry& entry, const Accrual& accrual);
    void count_order(const Member& member, bool decided);
    [[nodiscard]] VerdictRecord record_of(const Member& member, const Decision& decision,
                                          const std::vector<Comparison::Column>& columns,
                                          unsigned number) const;
    [[nodiscard]] VerdictRecord record_so_far(const Member& member) const;
    std::uint64_t keep(VerdictRecord record);
    void say(int priority, Event event, const Taker& taker, const std::string& text,
             const std::optional<std::string>& why = {});
    [[nodiscard]] LedgerEntry entry_of(const LedgerKey& key) const;
    [[nodiscard]] const Judging& judge() const { return edges_.targets.policy().judge; }

    const ExperimentEdges& edges_;
    OrderBook& book_ = edges_.book;
    LedgerFile& ledger_ = edges_.ledger;
    ExperimentTotals totals_;
    std::vector<VerdictRecord> to_write_;
    std::string said_;  // why the last slot could not begin
    bool turned_ = false;
};

}  // namespace wq
