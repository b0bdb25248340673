// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evidence/comparison.h"
#include "policy/judge_settings.h"

namespace wq::ab {

// Returns uniformly distributed 64-bit numbers.
using Random = std::function<std::uint64_t()>;

// 0..COUNT-1 in random order; all orders have the same probability.
std::vector<std::size_t> random_order(std::size_t count, const Random& random);

struct Verdict {
    Decision decision;
    std::string reason;  // if undecided: kMaxPairsReason, or the argument of end()
};

// Compares several arms round by round; the first arm is the reference. A round runs each arm once and gives
// one pair of the reference and each other arm. It uses no clock, file or command.
class Comparison {
  public:
    // At least two ARMS. SETTINGS must be within their ranges; max_pairs is the limit of rounds. The
    // tolerance of COUNTER is that of SETTINGS. ALL_PAIRS: continue after verdicts.
    Comparison(std::size_t arms, const JudgeSettings& settings, ComparedCounter counter, bool all_pairs);

    // The arms of the next round in the order to run them: the reference and all arms without a verdict.
    // Empty if the comparison is over.
    [[nodiscard]] std::vector<std::size_t> next_round(const Random& random) const;
    // Adds a complete round: the value, above 0, of each arm in it.
    void add(const std::map<std::size_t, double>& values);
    // Counts a round that gives no information: CPUs came or went, or the machine was suspended.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // Ends the comparison: arms without a verdict are undecided for REASON.
    void end(const std::string& reason);

    [[nodiscard]] unsigned rounds() const { return rounds_; }  // complete rounds, without dropped ones
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] std::size_t arms() const { return values_.size(); }
    [[nodiscard]] const std::vector<double>& values(std::size_t arm) const { return values_.at(arm); }
    // Results of ARM, which is not the reference. A verdict stays. The verdict is empty until there is one.
    // The effect uses all pairs, including those after a verdict.
    [[nodiscard]] const std::optional<Verdict>& verdict(std::size_t arm) const;
    [[nodiscard]] const std::vector<PairValues>& pairs(std::size_t arm) const;
    // At the verdict, or now if there is none.
    [[nodiscard]] Decision decision(std::size_t arm) const;
    [[nodiscard]] Effect effect(std::size_t arm) const;
    [[nodiscard]] const ComparedCounter& counter() const { return counter_; }

  private:
    struct Candidate {
        wq::Comparison comparison;
        std::optional<Verdict> verdict = {};
        std::vector<PairValues> pairs = {};
    };
    [[nodiscard]] bool is_over() const;

    ComparedCounter counter_;
    DecisionRule rule_;
    unsigned max_rounds_;
    bool all_pairs_;
    unsigned rounds_ = 0;
    std::map<std::string, unsigned> dropped_;
    std::vector<std::vector<double>> values_;  // index: arm
    std::vector<Candidate> candidates_;        // index: arm - 1
};

// Statistics of a sample; all 0 if it is empty.
struct Summary {
    double mean = 0;
    double median = 0;
    double deviation = 0;  // standard deviation; 0 for a single value
    double min = 0;
    double max = 0;
};
Summary summary_of(std::vector<double> values);

}  // namespace wq::ab
