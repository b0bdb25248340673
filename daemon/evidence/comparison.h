// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wq {

// Stakes for "the next value is above zero", in units of the values' own scale. The best stake depends on
// the ratio of effect to noise, which is not known beforehand, so the e-value is the mean over all stakes.
inline constexpr std::array<double, 7> kStakes{0.125, 0.25, 0.5, 1, 2, 4, 8};
using StakeLogs = std::array<double, kStakes.size()>;  // ln of an e-value per stake

// |ln E| of a stake is at most this: the lower bound is reached after 14,000 pairs of one sign or more. What
// the bound adds to the probability of a false verdict is too small for a double.
inline constexpr double kMostLog = 1e5;

// The factor for a stake's e-value, ln(2 / (1 + exp(-z))), with z = stake * x / scale. At most ln 2.
double log_factor(double z);

// ln of the mean of the e-values whose logarithms are LOGS.
template <std::size_t N>
double log_mean(const std::array<double, N>& logs) {
    const double top = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (const double log : logs) sum += std::exp(log - top);
    return top + std::log(sum / N);
}

// An e-process: a product of factors. If the sign of each value is random, given its size and all earlier
// values, each factor has mean 1. The product starts at 1, and the probability that it ever reaches c is at
// most 1/c (Ville). So it may be checked after every value. evidence/comparison.cpp explains why.
struct EProcess {
    StakeLogs logs{};
    double squares = 0;  // sum of x * x
    std::uint64_t count = 0;

    // X: finite. A zero does not change the e-value.
    void add(double x);
    // ln of the e-value, the mean over the stakes.
    [[nodiscard]] double log() const { return log_mean(logs); }
    // The same for the stakes from 1/2 on only: fewer values of one sign make it large.
    [[nodiscard]] double log_of_large_stakes() const;
    friend bool operator==(const EProcess&, const EProcess&) = default;
};

// An e-detector watches for a change at an unknown time (Shin, Ramdas, Rinaldo, "E-detectors", 2022): a
// CUSUM of e-values, M_k <- max(1, M_k) * factor_k, averaged over the stakes. If the signs are random, its
// mean after n values is at most n. So an alarm at M >= c comes on average after c values or later.
struct EDetector {
    StakeLogs logs{};    // ln M_k
    double squares = 0;  // exponentially weighted sum of x * x
    double weight = 0;   // sum of the weights

    // X: finite. The scale is an exponentially weighted root mean square, so that a load whose noise grew
    // soon stops looking like harm.
    void add(double x);
    [[nodiscard]] double log() const { return log_mean(logs); }
    friend bool operator==(const EDetector&, const EDetector&) = default;
};

// The change of a cost in percent; positive is worse. Only descriptive: the comparison stopped because of
// the same data, so the effect of an early verdict is overestimated.
struct Effect {
    struct Interval {
        double low = 0;
        double high = 0;
    };
    double percent = 0;  // the median
    std::optional<Interval>
        interval;  // 95%, from the Walsh averages; empty for fewer than kLeastForInterval differences
};

// With fewer differences, no pair of Walsh averages encloses the median with 95% probability.
inline constexpr std::size_t kLeastForInterval = 6;

// DIFFERENCES: ln(candidate) - ln(reference) of the pairs. If empty, there is no effect.
Effect effect_of(std::vector<double> differences);
// SORTED must not be empty.
double median(const std::vector<double>& sorted);

// What is kept of many differences d of a counter.
struct DifferenceSums {
    std::uint64_t pairs = 0;
    double sum = 0;      // of d
    double squares = 0;  // of d * d
    void add(const DifferenceSums& other);
    friend auto operator<=>(const DifferenceSums&, const DifferenceSums&) = default;
};

// The mean effect, with its 95% interval if there are kLeastForMean pairs. The interval is from mean and
// variance of d (normal), and takes pairs as independent: descriptive, too.
Effect mean_effect_of(const DifferenceSums& sums);
inline constexpr std::uint64_t kLeastForMean = 16;

// For people: "31% better (24 to 37)", "2% worse (1% better to 5% worse)" or "no difference", with two
// significant digits. Whether higher or lower values of the counter are better: a lower cost is better.
std::string effect_text(const Effect& effect);

// The arms of a comparison: the reference is in force, the candidate is tried against it.
enum class Side { reference, candidate };

// A quantity that is compared between arms. Lower is better unless `higher_is_better`.
struct ComparedCounter {
    std::string name;
    bool higher_is_better = false;
    double tolerance = 0;  // fraction 0..1: a cost that is higher by at most this is not called worse
    bool guard = false;    // can count against a candidate, never for it
    friend bool operator==(const ComparedCounter&, const ComparedCounter&) = default;
};

// The daemon cuts a window off if its work completes at less than a third of the expected pace, so such a
// window costs at least three times as much. Also the log ratio between 0 and any larger value.
inline const double kLostFirst = std::log(3.0);

// One counter in the two windows of a pair.
struct PairValues {
    double reference = 0;
    double candidate = 0;
};

// ln(candidate) - ln(reference) of the cost. Positive is worse, also for counters with `higher_is_better`. If
// one of the values is kZeroReading (counters/counter_table.h), it is ln 3 or -ln 3.
double log_ratio(const ComparedCounter& counter, const PairValues& values);

enum class Judgement { improved, regressed, undecided };
std::string_view name_of(Judgement judgement);
// The reason of a comparison that ended undecided by itself.
inline constexpr const char* kMaxPairsReason = "max_pairs";

// How much evidence a decision needs.
struct DecisionRule {
    double alpha = 0.05;      // above 0, at most 0.5: probability of a decision about a change without effect
    unsigned candidates = 1;  // candidates for this reference: each may look better by chance
    // The rule of `ab` and `bench`, for which somebody waits: the stakes from 1/2 alone, since the e-values
    // of smaller ones hardly grow in 16 pairs, and for `improved` neither kLeastPairs nor a lower sum of
    // costs.
    bool quick = false;
};

// A judgement, and the counter that decided it or is nearest to a decision.
struct Decision {
    Judgement judgement = Judgement::undecided;
    std::string counter;
    std::uint64_t pairs = 0;  // pairs of that counter
    double log_worse = 0;     // ln of the e-value of "the candidate costs more"
    double log_better = 0;
    std::size_t column = 0;  // index of that counter
    // The counter or guard with the largest E_worse above 1, if nothing else stands against `improved`.
    std::string veto = {};
    std::size_t newest = 64;  // the effect is that of so many of the newest differences
};

// All pairs ever measured of one candidate against one reference, as e-values. It never ends. Pure.
class Comparison {
  public:
    static constexpr std::size_t kLastDifferences = 64;
    static constexpr std::uint64_t kLeastPairs = 16;  // for `improved`
    // The range of values: sums of as many of them as there can be stay finite.
    static constexpr double kLeastValue = 1e-60;
    static constexpr double kMostValue = 1e60;

    // The state of one counter. A ledger stores it.
    struct Column {
        ComparedCounter counter;
        EProcess worse = {};
        EProcess better = {};
        double sum = 0;             // sum of the differences
        double largest = 0;         // |difference|
        double reference_cost = 0;  // sums of the values
        double candidate_cost = 0;
        std::deque<double> last = {};  // differences, oldest first, at most kLastDifferences
        [[nodiscard]] double cost_of_lost_window() const { return largest > 0 ? largest : kLostFirst; }
    };

    // COUNTERS: at least one that is not a guard.
    explicit Comparison(const std::vector<ComparedCounter>& counters);
    // Continues from a stored state.
    explicit Comparison(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // Why add() would reject the pair; empty if add() accepts it. VALUES: one per counter, in the same
    // order. A value that is not in the range is rejected; one may be missing, but not all that are judged.
    [[nodiscard]] std::string why_refused(const std::vector<std::optional<PairValues>>& values) const;
    void add(const std::vector<std::optional<PairValues>>& values);
    // Adds a window of SIDE that was empty, came too late, or that we cut off. It counts as the largest
    // difference so far (ln 3 if there is none), against the arm that ran in it.
    void add_lost_window(Side side);

    // Cheap enough to call after each pair.
    [[nodiscard]] Decision decide(const DecisionRule& rule) const;
    // The effect from the NEWEST of the last kLastDifferences pairs of that column.
    [[nodiscard]] Effect effect(std::size_t column, std::size_t newest = kLastDifferences) const;
    [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
    [[nodiscard]] std::vector<Column> take() && { return std::move(columns_); }

  private:
    std::vector<Column> columns_;
};

}  // namespace wq
