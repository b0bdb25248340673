// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/comparison.h"

#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "counters/counter_table.h"

// How a change is judged, and why the result is valid
// ===================================================
//
// The question is whether another affinity scope makes work cost less or more. The effect is a few percent.
// The noise is as large, drifts, comes in bursts and is correlated. Comparing "before" with "after" measures
// the drift. A standard deviation makes assumptions that do not hold. So we assume nothing about the noise.
// The only thing that we rely on is our own random choice.
//
// Randomized crossover. A pair is two adjacent windows of time; a random bit decides which of them runs
// under the candidate. Suppose that the change has no effect: then the two windows would have shown the same
// two numbers with either assignment of the arms, and the random bit decides only the sign of d =
// ln(candidate) - ln(reference). Given |d| and everything before it, both signs have probability 1/2,
// whatever the distribution of |d| (Fisher's argument for randomization, 1935).
//
// e-process. It tests "x is above zero", where x is d minus the tolerance. The e-value is multiplied by 2 /
// (1 + exp(-k x / r)), with a stake k and the scale r = sqrt(mean of x_1^2 .. x_i^2). The scale may use x_i,
// because it depends only on |x_i|. The two possible factors of a random sign add up to 2. So the e-value is
// a nonnegative martingale that starts at 1, and the probability that it ever reaches c is at most 1/c
// (Ville 1939). "Ever" is important: we may look after each pair, stop and continue at any time, and keep
// the e-value over a reboot, and the bound still holds. (Shafer, "Testing by betting", 2021; Ramdas,
// Gruenwald, Vovk, Shafer, "Game-theoretic statistics and safe anytime-valid inference", 2023; Waudby-Smith
// and Ramdas, 2024.)
//
// Stakes. With a large stake (8) the e-value nearly doubles with each pair while all signs agree, and a
// single opposite sign ruins it. With a small stake (1/8) it survives that, but grows slowly. A mean of
// martingales is a martingale, so we use the mean over seven stakes. The best of the seven then needs seven
// times the e-value; this is the price for not knowing the effect. A factor is at most 2, so a threshold of
// c takes at least log2(c) pairs.
//
// Tolerance. With x = d - ln(1 + t) and a random sign of d, one sign gains less than the other loses. This
// is a supermartingale, so the bound still holds.
//
// Decision rule. `regressed`: the e-value of "worse" of one of m counters and guards reaches m / alpha (a
// union bound, because counters of the same windows depend on each other in unknown ways). `improved`: the
// e-value of "better" of one of m counters reaches m K / alpha, where K is the number of candidates, since
// each could look better by chance. This counter must have kLeastPairs pairs, and its sum of the candidate's
// costs must be lower than the reference's: d weighs a pair by its sign and scale, and many small gains must
// not hide a few large losses. In addition, no counter's or guard's e-value of "worse" may be above 1.
// `regressed` by latency alone is withheld while the e-value of a better throughput is above 1/alpha: a
// producer that is not throttled queues faster, and its items wait longer.
//
// Limits. It may miss harm that is too small for the number of pairs, that no counter measures, or that only
// a later load shows. The effect of a comparison that stopped early tends to be overestimated.

namespace wq {

constexpr std::size_t kFirstLarge = 2;  // of kStakes
static_assert(kStakes[kFirstLarge] == 0.5);

double log_factor(double z) {
    // Only calls exp() with a negative number or zero, so it cannot overflow.
    return std::numbers::ln2 - std::log1p(std::exp(-std::abs(z))) + std::min(z, 0.0);
}

void EProcess::add(double x) {
    squares += x * x;
    count++;
    const double scale = std::sqrt(squares / static_cast<double>(count));
    if (scale == 0) return;
    for (std::size_t i = 0; i < kStakes.size(); i++)
        logs[i] = std::clamp(logs[i] + log_factor(kStakes[i] * x / scale), -kMostLog, kMostLog);
}

double EProcess::log_of_large_stakes() const {
    std::array<double, kStakes.size() - kFirstLarge> large{};
    std::copy(logs.begin() + kFirstLarge, logs.end(), large.begin());
    return log_mean(large);
}

constexpr double kMemory = 0.98;  // weight of the past: its half-life is 34 values

void EDetector::add(double x) {
    squares = kMemory * squares + x * x;
    weight = kMemory * weight + 1;
    const double scale = std::sqrt(squares / weight);
    for (std::size_t i = 0; i < kStakes.size(); i++) {
        const double factor = scale == 0 ? 0 : log_factor(kStakes[i] * x / scale);
        logs[i] = std::max(0.0, logs[i]) + factor;
    }
}

namespace {

bool is_measured(const PairValues& v) {
    const auto in_range = [](double value) {
        return value >= Comparison::kLeastValue && value <= Comparison::kMostValue;
    };
    return in_range(v.reference) && in_range(v.candidate);
}

// Whether COLUMN has no value of any pair, although it is a guard or another judged counter has some.
bool is_unread(const Comparison::Column& column, const std::vector<Comparison::Column>& all) {
    const auto is_read = [](const Comparison::Column& c) { return c.reference_cost > 0; };
    return !is_read(column) &&
           (column.counter.guard || std::ranges::any_of(all, [&](const Comparison::Column& other) {
                return !other.counter.guard && is_read(other);
            }));
}

void add_difference(Comparison::Column& column, double d) {
    column.worse.add(d - std::log1p(column.counter.tolerance));
    column.better.add(-d);
    column.sum += d;
    column.largest = std::max(column.largest, std::abs(d));
    column.last.push_back(d);
    if (column.last.size() > Comparison::kLastDifferences) column.last.pop_front();
}

bool costs_less_in_all(const Comparison::Column& column) {
    return column.counter.higher_is_better ? column.candidate_cost > column.reference_cost
                                           : column.candidate_cost < column.reference_cost;
}

// Whether `improved` may rest on this counter, if there is enough evidence.
bool may_improve(const Comparison::Column& column) {
    return column.worse.count >= Comparison::kLeastPairs && costs_less_in_all(column);
}

// The counter that is nearest to the evidence needed for a decision.
struct Nearest {
    const Comparison::Column* column = nullptr;
    double missing = std::numeric_limits<double>::infinity();  // ln of the factor that it still needs

    void offer(const Comparison::Column& other, double other_missing) {
        if (other_missing >= missing) return;
        column = &other;
        missing = other_missing;
    }
    [[nodiscard]] bool has_all() const { return missing <= 0; }
};

}  // namespace

double log_ratio(const ComparedCounter& counter, const PairValues& v) {
    const double from = counter.higher_is_better ? v.candidate : v.reference;
    const double to = counter.higher_is_better ? v.reference : v.candidate;
    // A ratio to 0 has no bound and would set the scale of all later differences.
    if ((from == kZeroReading) != (to == kZeroReading))
        return from == kZeroReading ? kLostFirst : -kLostFirst;
    return std::log(to) - std::log(from);
}

std::string_view name_of(Judgement judgement) {
    constexpr std::string_view kNames[] = {"improved", "regressed", "undecided"};
    return kNames[static_cast<std::size_t>(judgement)];
}

Comparison::Comparison(const std::vector<ComparedCounter>& counters) {
    for (const ComparedCounter& counter : counters) columns_.push_back({.counter = counter});
}

std::string Comparison::why_refused(const std::vector<std::optional<PairValues>>& values) const {
    if (values.size() != columns_.size()) return "not all counters were read";
    bool judged = false;
    for (std::size_t i = 0; i < columns_.size(); i++) {
        const ComparedCounter& counter = columns_[i].counter;
        judged = judged || (values[i] && !counter.guard);
        if (values[i] && !is_measured(*values[i]))
            return counter.name + " is not a number above 0, or out of range";
    }
    return judged ? "" : columns_.front().counter.name + " was not read";
}

void Comparison::add(const std::vector<std::optional<PairValues>>& values) {
    if (!why_refused(values).empty()) return;
    for (std::size_t i = 0; i < columns_.size(); i++) {
        if (!values[i]) continue;
        columns_[i].reference_cost += values[i]->reference;
        columns_[i].candidate_cost += values[i]->candidate;
        add_difference(columns_[i], log_ratio(columns_[i].counter, *values[i]));
    }
}

void Comparison::add_lost_window(Side side) {
    for (Column& column : columns_) {
        if (is_unread(column, columns_)) continue;
        const double size = column.cost_of_lost_window();
        if (column.worse.count > 0) {
            // The arm of the lost window gets the usual cost times the largest ratio; the other arm gets the
            // usual cost. The usual cost is the mean of the arm that is better so far: earlier lost windows
            // of the other one are in its mean.
            const auto pairs = static_cast<double>(column.worse.count);
            const double usual =
                (column.counter.higher_is_better ? std::max(column.reference_cost, column.candidate_cost)
                                                 : std::min(column.reference_cost, column.candidate_cost)) /
                pairs;
            const double paid = usual * std::exp(column.counter.higher_is_better ? -size : size);
            column.reference_cost += side == Side::reference ? paid : usual;
            column.candidate_cost += side == Side::candidate ? paid : usual;
        }
        add_difference(column, side == Side::candidate ? size : -size);
    }
}

Decision Comparison::decide(const DecisionRule& rule) const {
    const auto log_of = [&](const EProcess& state) {
        return rule.quick ? state.log_of_large_stakes() : state.log();
    };
    const auto log_worse = [&](const Column& column) { return log_of(column.worse); };
    const auto log_better = [&](const Column& column) { return log_of(column.better); };
    const double log_alpha = std::log(rule.alpha);
    const auto judged = static_cast<double>(
        std::ranges::count_if(columns_, [](const Column& c) { return !c.counter.guard; }));
    const double ask_worse = std::log(static_cast<double>(columns_.size())) - log_alpha;
    const double ask_better = std::log(judged) + std::log(rule.candidates) - log_alpha;
    const bool flows_better = std::ranges::any_of(columns_, [&](const Column& c) {
        return c.counter.name == "throughput" && log_better(c) > -log_alpha;
    });
    Nearest worse;
    Nearest better;
    Nearest clear;  // of the counters that `improved` may rest on
    const Column* veto = nullptr;
    for (const Column& column : columns_) {
        if (is_unread(column, columns_)) continue;
        if (log_worse(column) > (veto == nullptr ? 0 : log_worse(*veto))) veto = &column;
        if (!(flows_better && column.counter.name == "latency"))
            worse.offer(column, ask_worse - log_worse(column));
        if (column.counter.guard) continue;
        better.offer(column, ask_better - log_better(column));
        if (rule.quick || may_improve(column)) clear.offer(column, ask_better - log_better(column));
    }
    const auto tell = [&](Judgement judgement, const Column& column) {
        return Decision{judgement,          column.counter.name,
                        column.worse.count, log_worse(column),
                        log_better(column), static_cast<std::size_t>(&column - columns_.data())};
    };
    if (worse.has_all()) return tell(Judgement::regressed, *worse.column);
    if (clear.has_all() && veto == nullptr) return tell(Judgement::improved, *clear.column);
    // Both have a column, because one at least is not a guard.
    Decision out =  // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
        tell(Judgement::undecided, worse.missing < better.missing ? *worse.column : *better.column);
    if (clear.has_all()) out.veto = veto->counter.name;
    return out;
}

Effect Comparison::effect(std::size_t column, std::size_t newest) const {
    const auto& last = columns_.at(column).last;
    return effect_of({last.end() - static_cast<std::ptrdiff_t>(std::min(newest, last.size())), last.end()});
}

// The interval follows Hodges and Lehmann (1963). The Walsh averages of n differences are the means of any
// two of them, and of each with itself. The number of averages above a value is Wilcoxon's signed-rank
// statistic for that value as the median. So the values that the test does not reject lie between the C-th
// smallest and the C-th largest average, where C - 1 is the largest rejected rank sum. The n (n+1) / 2
// averages are counted, not stored: 10,000 pairs would have fifty million.

namespace {

constexpr double kTail = 0.025;  // on each side
constexpr double kTailNormal = 1.959963984540054;
constexpr std::size_t kMostExact = 64;  // differences; above this, the normal approximation is as good

// The probability of each sum of the ranks 1..n, if each rank counts with probability 1/2.
std::vector<double> rank_sums(std::size_t n) {
    std::vector<double> p(n * (n + 1) / 2 + 1, 0.0);
    p[0] = 1;
    for (std::size_t rank = 1; rank <= n; rank++)
        for (std::size_t sum = p.size(); sum-- > 0;)
            p[sum] = (p[sum] + (sum >= rank ? p[sum - rank] : 0.0)) / 2;
    return p;
}

std::uint64_t exactly_refused(std::size_t n) {
    const auto p = rank_sums(n);
    std::uint64_t refused = 0;
    double below = p[0];
    while (below <= kTail) below += p[++refused];
    return refused;
}

// The number of rank sums, from 0 upwards, that are rejected on one side: C in the comment above. It is
// needed for each target at each look, and takes 0.1 ms to compute for 64 differences, so the results are
// cached.
std::uint64_t refused_sums(std::size_t n) {
    if (n > kMostExact) {
        const double ranks = static_cast<double>(n);
        const double mean = ranks * (ranks + 1) / 4;
        const double deviation = std::sqrt(mean * (2 * ranks + 1) / 6);
        return static_cast<std::uint64_t>(std::llround(mean - kTailNormal * deviation));
    }
    static std::array<std::uint64_t, kMostExact + 1> known{};
    if (known[n] == 0) known[n] = exactly_refused(n);
    return known[n];
}

// Number of Walsh averages of SORTED that are at most VALUE.
std::uint64_t averages_up_to(const std::vector<double>& sorted, double value) {
    std::uint64_t count = 0;
    std::size_t end = sorted.size();  // averages of sorted[i] with elements before END are at most VALUE
    for (std::size_t i = 0; i < end; i++) {
        while (end > i && (sorted[i] + sorted[end - 1]) / 2 > value) end--;
        count += end - i;
    }
    return count;
}

// The K-th smallest Walsh average, K from 1.
double walsh_average(const std::vector<double>& sorted, std::uint64_t k) {
    double low = sorted.front();
    double high = sorted.back();
    if (averages_up_to(sorted, low) >= k) return low;
    for (;;) {
        const double middle = (low + high) / 2;
        if (middle <= low || middle >= high) return high;
        (averages_up_to(sorted, middle) >= k ? high : low) = middle;
    }
}

double percent(double difference) {
    return std::min(100 * std::expm1(difference), std::numeric_limits<double>::max());
}

constexpr double kLeastShown = 0.01;  // percent
constexpr double kMostShown = 1e6;

// |PERCENT| with two significant digits.
std::string size_text(double percent) {
    const double size = std::abs(percent);
    if (size < kLeastShown) return "0";
    if (size < 99.5 || size >= kMostShown) return fmt::format("{:.2g}", size);
    const double unit = std::pow(10, std::floor(std::log10(size)) - 1);
    return fmt::format("{:.0f}", std::round(size / unit) * unit);
}

int side_of(double percent) {
    return std::abs(percent) < kLeastShown ? 0 : percent < 0 ? -1 : 1;
}

std::string change_text(double percent) {
    const int side = side_of(percent);
    return side == 0 ? "no difference" : size_text(percent) + (side < 0 ? "% better" : "% worse");
}

}  // namespace

double median(const std::vector<double>& sorted) {
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Effect effect_of(std::vector<double> differences) {
    if (differences.empty()) return {};
    std::sort(differences.begin(), differences.end());
    Effect out{percent(median(differences)), {}};
    const std::size_t n = differences.size();
    if (n < kLeastForInterval) return out;
    const std::uint64_t nth = refused_sums(n);
    out.interval = {percent(walsh_average(differences, nth)),
                    percent(walsh_average(differences, n * (n + 1) / 2 + 1 - nth))};
    return out;
}

void DifferenceSums::add(const DifferenceSums& other) {
    pairs += other.pairs;
    sum += other.sum;
    squares += other.squares;
}

Effect mean_effect_of(const DifferenceSums& sums) {
    constexpr double z = 1.96;  // 95%
    if (sums.pairs == 0) return {};
    const auto n = static_cast<double>(sums.pairs);
    const double mean = sums.sum / n;
    Effect out{percent(mean), {}};
    if (sums.pairs < kLeastForMean) return out;
    const double variance = std::max(0.0, sums.squares - sums.sum * mean) / (n - 1);
    // Student's distribution, by the first term of its expansion: the variance is an estimate, too.
    const double half = (z + (z * z * z + z) / (4 * (n - 1))) * std::sqrt(variance / n);
    out.interval = {percent(mean - half), percent(mean + half)};
    return out;
}

std::string effect_text(const Effect& effect) {
    std::string out = change_text(effect.percent);
    if (!effect.interval) return out;
    double from = effect.interval->low;
    double to = effect.interval->high;
    if (side_of(effect.percent) < 0) std::swap(from, to);  // ends on the side of the median
    if (side_of(from) == side_of(to) && side_of(to) == side_of(effect.percent))
        return side_of(to) == 0 ? out : fmt::format("{} ({} to {})", out, size_text(from), size_text(to));
    return fmt::format("{} ({} to {})", out, change_text(from), change_text(to));
}

}  // namespace wq
