// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/comparison.h"
#include "machine/paths.h"
#include "policy/policy.h"

namespace wq::lab {

// Returns uniformly distributed 64-bit numbers.
using Random = std::function<std::uint64_t()>;

// 0..COUNT-1 in random order; all orders have the same probability.
std::vector<std::size_t> random_order(std::size_t count, const Random& random);

// How an arm compares with the reference.
struct ArmResult {
    std::optional<Effect> effect;  // of all pairs, including those after a verdict; empty without pairs
    std::string verdict;           // improved, regressed, undecided; "" if there is none yet
    std::string reason;            // if undecided: kMaxPairsReason, or the argument of end()
    std::uint64_t pairs = 0;       // these three at the verdict, or now if there is none
    double e_regressed = 1;
    double e_improved = 1;
};
// Adds the verdict, the e-values and the effect to OUT.
void add_json(nlohmann::ordered_json& out, const ArmResult& result);

// Compares several arms round by round; the first arm is the reference. A round runs each arm once and gives
// one pair of the reference and each other arm. It uses no clock, file or command.
class Rounds {
  public:
    // At least two ARMS. SETTINGS must be within their ranges; max_pairs is the limit of rounds. The
    // tolerance of COUNTER is that of SETTINGS. ALL_PAIRS: continue after verdicts.
    Rounds(std::size_t arms, const JudgeSettings& settings, ComparedCounter counter, bool all_pairs);

    // The arms of the next round in the order to run them: the reference and all arms without a verdict.
    // Empty if the comparison is over.
    [[nodiscard]] std::vector<std::size_t> next(const Random& random) const;
    // Adds a complete round: the value, above 0, of each arm in it.
    void add(const std::map<std::size_t, double>& values);
    // Counts a round that gives no information: CPUs came or went, or the machine was suspended.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // Ends the comparison: arms without a verdict are undecided for REASON.
    void end(const std::string& reason);

    [[nodiscard]] unsigned count() const { return count_; }  // complete rounds, without dropped ones
    [[nodiscard]] unsigned most() const { return most_; }
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] const std::vector<double>& values(std::size_t arm) const { return values_.at(arm); }
    [[nodiscard]] const ComparedCounter& counter() const { return counter_; }
    // Of ARM, which is not the reference. A verdict stays.
    [[nodiscard]] const std::vector<PairValues>& pairs(std::size_t arm) const;
    [[nodiscard]] ArmResult result(std::size_t arm) const;
    // The results so far in one line: "round 5 of 16; smt 1.2% worse, numa 3% better".
    [[nodiscard]] std::string progress(const std::vector<std::string>& arms) const;

  private:
    struct Verdict {
        Decision decision;
        std::string reason;
    };
    struct Candidate {
        Comparison comparison;
        std::optional<Verdict> verdict = {};
        std::vector<PairValues> pairs = {};
    };
    [[nodiscard]] bool is_over() const;

    ComparedCounter counter_;
    DecisionRule rule_;
    unsigned most_;
    bool all_pairs_;
    unsigned count_ = 0;
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

// Conditions that must not change within a round.
struct Conditions {
    std::int64_t suspended = 0;  // time_suspended()
    std::string cpus;            // cpu_state()
};
Conditions conditions_of(const Paths& paths);

// The external functions of a comparison.
struct Edges {
    std::function<Status(std::size_t arm)> switch_to;        // writes even if nothing changes
    std::function<Result<double>(std::size_t arm)> measure;  // runs the command once after the switch
    std::function<Conditions()> conditions;
    Random random;
    std::function<void()> progress;  // called before each round
    std::function<void()> counts;    // called after each round that counts
};

inline constexpr unsigned kMostDropped = 10;  // the run fails after this many dropped rounds in a row

// Runs rounds until the comparison is over. An error ends it; ROUNDS keeps the earlier measurements.
Status run_rounds(Rounds& rounds, const Edges& edges);

// Counts the threads named kworker/u*: the workers of all unbound pools, of any workqueue, strict or not,
// busy or idle (kernel/workqueue.c, format_worker_id()). An idle worker stays for five minutes.
unsigned count_kworkers(const Paths& paths);

}  // namespace wq::lab
