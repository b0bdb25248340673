// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/e_process.h"
#include "evidence/effect.h"

namespace wq {

// The arms of a comparison: what is in force, and what is tried against it.
enum class Side { reference, candidate };

// A quantity that arms are compared by: a cost, unless more of it is better.
struct ComparedCounter {
    std::string name;
    bool higher_is_better = false;
    double tolerance = 0;  // a share, 0..1: a candidate that costs no more than this is not called worse
    bool guard = false;    // can speak against a candidate, never for it
    friend bool operator==(const ComparedCounter&, const ComparedCounter&) = default;
};

// One counter in the two windows of a pair.
struct PairValues {
    double reference = 0;
    double candidate = 0;
};

// ln(candidate) - ln(reference) of the cost: above zero is worse, whichever way the counter counts.
double log_ratio(const ComparedCounter& counter, const PairValues& values);

enum class Judgement { undecided, improved, regressed };
std::string_view name_of(Judgement judgement);

// How much evidence a decision asks for.
struct DecisionRule {
    double alpha = 0.05;  // above 0, at most 0.5: the chance that a change that does nothing is decided upon
    unsigned candidates = 1;  // how many are compared with this reference: each may look better by chance
};

// A judgement, with the counter that decided it, or is nearest to deciding.
struct Decision {
    Judgement judgement = Judgement::undecided;
    std::string counter;
    std::uint64_t pairs = 0;  // of that counter
    double log_worse = 0;     // ln of the e-value of "the candidate costs more"
    double log_better = 0;
    std::size_t column = 0;  // of that counter
};

// All pairs ever measured of one candidate against one reference, as e-values. It never ends: a decision is a
// look at it. Pure: no clock, no file, no workqueue.
class Comparison {
  public:
    static constexpr std::size_t kLastDifferences = 64;
    static constexpr std::uint64_t kLeastPairs = 16;  // for `improved`

    // What is known by one counter, and what a ledger keeps of it.
    struct Column {
        ComparedCounter counter;
        EProcess::State worse = {};
        EProcess::State better = {};
        double sum = 0;             // of the differences
        double largest = 0;         // |difference|
        double reference_cost = 0;  // plain sums of the values
        double candidate_cost = 0;
        std::deque<double> last = {};  // differences, oldest first, at most kLastDifferences
    };

    // COUNTERS: at least one that is no guard.
    explicit Comparison(const std::vector<ComparedCounter>& counters);
    // Goes on with what was known.
    explicit Comparison(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // Why the pair would be refused; empty if add() takes it. VALUES: one per counter, in their order. A
    // value that is not a positive number is refused; a guard may be missing.
    [[nodiscard]] std::string why_refused(const std::vector<std::optional<PairValues>>& values) const;
    void add(const std::vector<std::optional<PairValues>>& values);
    // A window of SIDE that is empty, came too late, or was cut off by us: it counts as the largest
    // difference so far, against the arm that ran in it.
    void add_lost_window(Side side);

    // Cheap: meant to be asked after each pair.
    [[nodiscard]] Decision decide(const DecisionRule& rule) const;
    // Of the last kLastDifferences pairs by that column.
    [[nodiscard]] Effect effect(std::size_t column) const;
    [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }

  private:
    std::vector<Column> columns_;
};

}  // namespace wq
