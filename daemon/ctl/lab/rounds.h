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

// The figures of one run of an arm.
struct Figures {
    double value = 0;                     // what is compared: ns, a number of the command, MB/s
    std::optional<double> kworkers = {};  // of `ab`: count_kworkers() after the run
    // Of `bench` alone; what the kernel does not show is empty, also of its workqueue's kworkers.
    std::optional<double> items_per_s = {};                         // of its workqueue
    std::optional<double> p50 = {}, p90 = {}, p95 = {}, p99 = {};   // in queue_work(), ns
    std::optional<double> pools = {};                               // at the end
    std::optional<double> cpu = {};                                 // CPU time per item, ns
    std::optional<double> mb_per_s = {}, io_p50 = {}, io_p99 = {};  // of reads or writes; ns
    double seconds = 0;  // of the load, also before the measurement
};

// How an arm compares with the reference.
struct ArmResult {
    std::optional<Effect> effect = {};  // of all pairs, including those after a verdict; empty without pairs
    std::string verdict = {};           // improved, regressed, undecided; "" if there is none yet
    std::string reason = {};            // if undecided: kMaxPairsReason, or the argument of end()
    std::uint64_t pairs = 0;            // these three at the verdict, or now if there is none
    double e_regressed = 1;
    double e_improved = 1;
};
struct Row {
    std::string arm;
    std::optional<std::size_t> pools;  // empty if the kernel's pods cannot be derived
    std::vector<Figures> runs{};       // of the rounds that count
    ArmResult result{};                // not set in a reference
    std::string same = {};             // the first arm that makes the same pods; "" if that is this one
    std::string load = {};             // of `bench`: "write" or "read", which have a reference each
    std::size_t reference = 0;         // index of the row that this one is compared with; its own: it is one
};

// {NAME: the arm, "role", "pools"}, then FIGURES, then the result of a candidate.
nlohmann::ordered_json row_json(const char* name, const Row& row, bool is_reference,
                                const nlohmann::ordered_json& figures);

// Compares several arms round by round; the first arm is a reference. A round runs each arm once and gives
// one pair of each candidate and its reference. It uses no clock, file or command.
class Rounds {
  public:
    // At least two ROWS. SETTINGS: max_pairs is the limit of rounds; their tolerance is COUNTER's. ALL_PAIRS:
    // continue after verdicts.
    Rounds(std::vector<Row> rows, const JudgeSettings& settings, ComparedCounter counter, bool all_pairs);

    // The arms of the next round, references and those without a verdict, in random order; empty: it is over.
    [[nodiscard]] std::vector<std::size_t> next(const Random& random) const;
    // Adds a complete round: the figures of each arm in it, with values above 0.
    void add(const std::map<std::size_t, Figures>& runs);
    // Counts a round that gives no information: CPUs came or went, or the machine was suspended.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // Ends the comparison: arms without a verdict are undecided for REASON.
    void end(const std::string& reason);

    [[nodiscard]] unsigned count() const { return count_; }  // complete rounds, without dropped ones
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] const ComparedCounter& counter() const { return counter_; }
    [[nodiscard]] const JudgeSettings& settings() const { return settings_; }
    [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }  // with results; a verdict stays
    // Of ARM, a candidate: its n-th run and that of its reference were in one round.
    [[nodiscard]] std::vector<PairValues> pairs(std::size_t arm) const;
    // The results so far in one line: "round 5 of 16; smt 1.2% worse, numa 3% better".
    [[nodiscard]] std::string progress() const;

  private:
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] bool is_reference(std::size_t arm) const { return rows_[arm].reference == arm; }
    void conclude(std::size_t arm, const std::string& reason);

    std::vector<Row> rows_;
    JudgeSettings settings_;
    ComparedCounter counter_;
    bool all_pairs_;
    unsigned count_ = 0;
    std::map<std::string, unsigned> dropped_;
};

// Statistics of a sample; all 0 if it is empty.
struct Summary {
    double median = 0;
    double min = 0;
    double max = 0;
};
Summary summary_of(std::vector<double> values);
// Of the MEMBER of all runs; empty if a run lacks it, or without runs.
template <class T>
std::optional<Summary> summary_of(const Row& row, T Figures::*member) {
    std::vector<double> values;
    for (const Figures& run : row.runs)
        if (const std::optional<double> value = run.*member) values.push_back(*value);
    if (values.empty() || values.size() < row.runs.size()) return std::nullopt;
    return summary_of(std::move(values));
}

// Conditions that must not change within a round.
struct Conditions {
    std::int64_t suspended = 0;  // time_suspended()
    std::string cpus;            // cpu_state()
};
Conditions conditions_of(const Paths& paths);

// The external functions of a comparison.
struct Edges {
    std::function<Status()> begin;  // called once, before the others; see ArmSwitcher
    // Switches to ARM. Writes even if it is already in place, so that all runs start the same way.
    std::function<Status(std::size_t arm)> switch_to;
    std::function<Result<Figures>(std::size_t arm)> measure;  // runs ARM once, after the switch to it
    std::function<Status()> check;                            // error: an external writer
    std::function<Conditions()> conditions;
    Random random;
    std::function<void(const std::string&)> progress;  // called before each round
};

inline constexpr unsigned kMostDropped = 10;  // the run fails after this many dropped rounds in a row

// Runs the reference WARM_UPS times, and then rounds until the comparison is over. An error ends it; ROUNDS
// keeps the earlier measurements.
Status run_rounds(Rounds& rounds, unsigned warm_ups, const Edges& edges);

// Counts the threads named kworker/u*: the workers of all unbound pools, of any workqueue, strict or not,
// busy or idle (kernel/workqueue.c, format_worker_id()). An idle worker stays for five minutes.
unsigned count_kworkers(const Paths& paths);

}  // namespace wq::lab
