// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "evidence/comparison.h"
#include "evidence/ledger.h"

namespace wq {

// What one slot says of one comparison: the values of its columns, or a window that was lost.
struct PairEvidence {
    std::vector<std::optional<PairValues>> values;
    std::optional<Side> lost;
};

struct AccrualRule {
    double alpha = 0.05;
    unsigned candidates = 1;
    unsigned max_pairs = 64;
    std::uint64_t run_length = 20'000;
    bool watched = false;  // the candidate is in force: an e-detector looks for harm
    std::int64_t now = 0;  // s since 1970
};

enum class Turn : std::uint8_t {
    none,
    improved,
    regressed,
    undecided,   // max_pairs pairs did not decide: from now on it is sparse
    taken_back,  // by the watch; the comparison begins anew
};

// What the pair made of the entry. DECISION and EFFECT are those before a watch's alarm clears the evidence.
struct Accrual {
    Turn turn = Turn::none;
    Decision decision;
    Effect effect;
};

// Adds a pair to ENTRY, which has columns. Pure.
Accrual accrue(LedgerEntry& entry, const PairEvidence& pair, const AccrualRule& rule);

// A window that our own end cut off, while SIDE's arm ran. It counts, and nothing is decided by it.
void add_lost_window(LedgerEntry& entry, Side side);

// How the entry stands, without a pair more.
Decision decision_of(const LedgerEntry& entry, double alpha, unsigned candidates);

// ln M of the counter whose e-detector is nearest to an alarm; 0 without a watch.
double watch_log(const LedgerEntry& entry);
// Above this the watch is in doubt: pairs come in every slot.
inline constexpr double kDoubt = 10;

// A regressed comparison that is tried again after retry_after has so many pairs, and rests again if they did
// not change its standing.
inline constexpr std::uint64_t kRetryPairs = 16;

}  // namespace wq
