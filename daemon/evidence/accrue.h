// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "evidence/comparison.h"
#include "evidence/ledger.h"

namespace wq {

// The result of one slot for one comparison: the values of its columns, or the side whose window was lost.
struct PairEvidence {
    std::vector<std::optional<PairValues>> values;
    std::optional<Side> lost;
};

struct AccrualRule {
    double alpha = 0.05;  // of all comparisons of these arms: each alarm of the watch begins another one
    unsigned candidates = 1;
    unsigned max_pairs = 64;
    std::uint64_t run_length = 20'000;
    bool watched = false;   // the candidate is in force: an e-detector looks for harm
    std::int64_t now = 0;   // s since 1970
    bool only_one = false;  // all of alpha is for this comparison (`judge`)
};

enum class Turn : std::uint8_t {
    none,
    improved,
    regressed,
    undecided,   // no decision after max_pairs pairs; the comparison is sparse from now on
    taken_back,  // by the watch; the comparison starts again
};

// How the pair changed the entry. At an alarm of the watch: from before the evidence is cleared.
struct Accrual {
    Turn turn = Turn::none;
    Decision decision;
    std::vector<Comparison::Column> columns;  // what a turn rests on
    double watch = 0;                         // watch_log()
};

// Adds a pair to ENTRY, which has its columns already. Changes nothing else.
Accrual accrue(LedgerEntry& entry, const PairEvidence& pair, const AccrualRule& rule);

// A window that the daemon cut off while the arm of SIDE ran. Makes no decision.
void add_lost_window(LedgerEntry& entry, Side side);

// The decision from the current evidence of ENTRY. ALPHA: as in AccrualRule.
Decision decision_of(const LedgerEntry& entry, double alpha, unsigned candidates);

// ln M of the counter whose e-detector is nearest to an alarm; 0 without a watch.
double watch_log(const LedgerEntry& entry);
// If M is above this, the kept arm is in doubt, and its next pair is due at once.
inline constexpr double kDoubt = 10;

// A regressed comparison that is tried again after retry_after rests again after so many pairs.
inline constexpr std::uint64_t kRetryPairs = 16;

// Conditions that stop an experiment early. None of them is a verdict.

// Whether a load starves: COMPLETED is less than a third of the items EXPECTED in the same time. False if
// EXPECTED is too small to tell. Call it for the windows of both arms: if only the candidate's windows were
// checked, the size of a difference would depend on the coin.
bool starves(double completed, double expected);

// Whether a pair's difference D (ln of the candidate's cost over the reference's) is above ln 3 by more than
// the noise of the differences BEFORE it explains. The noise is their deviation about their mean, so a steady
// effect is not part of it. False with fewer than kLeastForNoise differences.
bool is_beyond_noise(const std::deque<double>& before, double d);
inline constexpr std::size_t kLeastForNoise = 4;

// The time that a target lost to experiments today.
class LostTime {
  public:
    // Adds the part of a window of SECONDS that the cheaper arm would not have needed: the cost was D, as ln,
    // above its cost. Never more than SECONDS. DAY: days since 1970.
    void add(std::int64_t day, double d, double seconds);
    [[nodiscard]] double on(std::int64_t day) const { return day == day_ ? lost_ : 0; }

  private:
    std::int64_t day_ = 0;
    double lost_ = 0;
};

}  // namespace wq
