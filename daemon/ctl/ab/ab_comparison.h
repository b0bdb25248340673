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

// Evenly distributed numbers of 64 bits.
using Random = std::function<std::uint64_t()>;

// 0..COUNT-1 in random order, each order being as likely as any other.
std::vector<std::size_t> random_order(std::size_t count, const Random& random);

// Several arms, the first of which is the baseline, compared round by round: a round runs each arm once, and
// is one pair of the baseline and each of the others. It knows of no clock, file or command.
class Comparison {
  public:
    // At least two ARMS. SETTINGS within their ranges; max_pairs is the most rounds. ALL_PAIRS: verdicts do
    // not end it.
    Comparison(std::size_t arms, const JudgeSettings& settings, JudgedCounter counter, bool all_pairs);

    // The arms of the next round in the order in which they are to run: the baseline, and those that have no
    // verdict yet. Empty where there is no more to be asked.
    [[nodiscard]] std::vector<std::size_t> next_round(const Random& random) const;
    // A round that was run to its end: the value of each arm that had a part in it, above 0.
    void add(const std::map<std::size_t, double>& values);
    // A round that tells nothing: CPUs came or went, the machine was suspended.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // No more rounds: those without a verdict are inconclusive for REASON.
    void end(const std::string& reason);

    [[nodiscard]] unsigned rounds() const { return rounds_; }  // used, dropped ones not counted
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] std::size_t arms() const { return values_.size(); }
    [[nodiscard]] const std::vector<double>& values(std::size_t arm) const { return values_.at(arm); }
    // Of ARM, which is not the baseline. The verdict is empty before there is one; the effect is of all
    // pairs, also of those after a verdict.
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
    std::vector<std::vector<double>> values_;  // by arm
    std::vector<Candidate> candidates_;        // of arm 1, 2, ...
};

// What a sample looks like; all 0 where it is empty.
struct Summary {
    double mean = 0;
    double median = 0;
    double deviation = 0;  // standard deviation, 0 of a single value
    double min = 0;
    double max = 0;
};
Summary summary_of(std::vector<double> values);

}  // namespace wq::ab
