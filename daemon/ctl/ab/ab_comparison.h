// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/trial.h"

namespace wq::ab {

// Returns uniformly distributed 64-bit numbers.
using Random = std::function<std::uint64_t()>;

// 0..COUNT-1 in random order; all orders have the same probability.
std::vector<std::size_t> random_order(std::size_t count, const Random& random);

// Compares several arms round by round; the first arm is the baseline. A round runs each arm once and gives
// one pair of the baseline and each other arm. It uses no clock, file or command.
class Comparison {
  public:
    // At least two ARMS. SETTINGS must be within their ranges; max_pairs is the limit of rounds. ALL_PAIRS:
    // continue after verdicts.
    Comparison(std::size_t arms, const JudgeSettings& settings, JudgedCounter counter, bool all_pairs);

    // The arms of the next round in the order to run them: the baseline and all arms without a verdict.
    // Empty if the comparison is over.
    [[nodiscard]] std::vector<std::size_t> next_round(const Random& random) const;
    // Adds a complete round: the value, above 0, of each arm in it.
    void add(const std::map<std::size_t, double>& values);
    // Counts a round that gives no information: CPUs came or went, or the machine was suspended.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // Ends the comparison: arms without a verdict are inconclusive for REASON.
    void end(const std::string& reason);

    [[nodiscard]] unsigned rounds() const { return rounds_; }  // complete rounds, without dropped ones
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] std::size_t arms() const { return values_.size(); }
    [[nodiscard]] const std::vector<double>& values(std::size_t arm) const { return values_.at(arm); }
    // Results of ARM, which is not the baseline. The verdict is empty until there is one. The effect uses
    // all pairs, including those after a verdict.
    [[nodiscard]] const std::optional<TrialVerdict>& verdict(std::size_t arm) const;
    [[nodiscard]] const std::vector<Readings>& pairs(std::size_t arm) const;
    [[nodiscard]] Standing standing(std::size_t arm) const;
    [[nodiscard]] Effect effect(std::size_t arm) const;
    [[nodiscard]] const JudgedCounter& counter() const { return counter_; }

  private:
    struct Candidate {
        Trial trial;
        std::optional<TrialVerdict> verdict = {};
        std::vector<Readings> pairs = {};
    };
    [[nodiscard]] bool is_over() const;

    JudgedCounter counter_;
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
