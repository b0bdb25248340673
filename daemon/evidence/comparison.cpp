// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

// How a change is judged, and why that may be believed
// ====================================================
//
// The question is whether another affinity scope makes work cost less or more, where the effect is a few
// percent and the noise is as large, drifts, comes in bursts and is correlated. A comparison of "before" with
// "after" measures the drift. A standard deviation assumes what does not hold. So nothing is assumed about
// the noise; the one thing known for sure is a coin that we toss ourselves.
//
// Randomized crossover. A pair is two adjacent windows of time; a fair coin decides which of them runs under
// the candidate. Suppose that the change does nothing: then the two windows would have shown the same two
// numbers whichever arm's name they carry, and the coin decides only the sign of d = ln(candidate) -
// ln(reference). Given |d| and everything before it, the sign is a fair coin, whatever the distribution of
// |d| (Fisher's argument for randomization, 1935).
//
// e-process. Bet on "x is above zero", x being d less the tolerance: the e-value is multiplied by 2 / (1 +
// exp(-k x / r)), with a stake k and the scale r = sqrt(mean of x_1^2 .. x_i^2), which may use x_i, since it
// depends on |x_i| alone. The two factors that a fair coin can bring add up to 2: the e-value is a
// nonnegative martingale that starts at 1, and ever reaches c with probability 1/c at most (Ville 1939).
// "Ever" is the point: we look after each pair, stop and go on whenever we like, keep the e-value over a
// reboot, and the bound holds. (Shafer, "Testing by betting", 2021; Ramdas, Gruenwald, Vovk, Shafer,
// "Game-theoretic statistics and safe anytime-valid inference", 2023; Waudby-Smith and Ramdas, 2024.)
//
// Stakes. A bold stake (8) doubles with nearly each pair while all signs agree and is ruined by one that does
// not; a timid one (1/8) survives that and takes long. A mean of martingales is one; of seven equal parts the
// best needs seven times the e-value, which is what not knowing the effect costs. A factor is at most 2: a
// threshold of c takes log2(c) pairs at least.
//
// Tolerance. With x = d - ln(1 + t) and a fair sign of d, what the one sign wins is less than what the other
// loses: a supermartingale, so the bound holds all the more.
//
// What is asked. `regressed`: the e-value of "worse" of one of m counters and guards reaches m / alpha (a
// union bound: counters of the same windows depend on each other in unknown ways). `improved`: the e-value of
// "better" of one of m counters reaches m K / alpha, K being the number of candidates, since each could look
// better by chance. Beyond that, no e-value of "worse" may be above 1, there must be kLeastPairs pairs, and
// the plain sum of the candidate's costs must be the smaller one: d weighs a pair by its sign and scale, and
// many small gains must not hide a few large losses. `regressed` by latency alone is withheld while there is
// as much evidence that throughput is better: a producer that is not throttled queues faster, and waits
// longer.
//
// What is not promised. That harm is found which is smaller than the pairs can show, is not in what is
// counted, or comes with tomorrow's load. And the effect of what stopped early tends to be overstated.

namespace wq {
namespace {

bool is_measured(const PairValues& v) {
    return std::isfinite(v.reference) && std::isfinite(v.candidate) && v.reference > 0 && v.candidate > 0;
}

void add_difference(Comparison::Column& column, double d) {
    EProcess worse(column.worse);
    EProcess better(column.better);
    worse.add(d - std::log1p(column.counter.tolerance));
    better.add(-d);
    column.worse = worse.state();
    column.better = better.state();
    column.sum += d;
    column.largest = std::max(column.largest, std::abs(d));
    column.last.push_back(d);
    if (column.last.size() > Comparison::kLastDifferences) column.last.pop_front();
}

double log_worse(const Comparison::Column& column) {
    return log_mean(column.worse.logs);
}

double log_better(const Comparison::Column& column) {
    return log_mean(column.better.logs);
}

bool costs_less_in_all(const Comparison::Column& column) {
    return column.counter.higher_is_better ? column.candidate_cost > column.reference_cost
                                           : column.candidate_cost < column.reference_cost;
}

// The counter that has most of what a decision asks for.
struct Nearest {
    const Comparison::Column* column = nullptr;
    double missing = std::numeric_limits<double>::infinity();  // ln of the factor that it lacks

    void offer(const Comparison::Column& other, double other_missing) {
        if (other_missing >= missing) return;
        column = &other;
        missing = other_missing;
    }
    [[nodiscard]] bool has_all() const { return missing <= 0; }
};

}  // namespace

double log_ratio(const ComparedCounter& counter, const PairValues& v) {
    return counter.higher_is_better ? std::log(v.reference) - std::log(v.candidate)
                                    : std::log(v.candidate) - std::log(v.reference);
}

std::string_view name_of(Judgement judgement) {
    switch (judgement) {
        case Judgement::improved:
            return "improved";
        case Judgement::regressed:
            return "regressed";
        case Judgement::undecided:
            break;
    }
    return "undecided";
}

Comparison::Comparison(const std::vector<ComparedCounter>& counters) {
    for (const ComparedCounter& counter : counters) columns_.push_back({.counter = counter});
}

std::string Comparison::why_refused(const std::vector<std::optional<PairValues>>& values) const {
    if (values.size() != columns_.size()) return "not all counters were read";
    for (std::size_t i = 0; i < columns_.size(); i++) {
        const ComparedCounter& counter = columns_[i].counter;
        if (!values[i] && !counter.guard) return counter.name + " was not read";
        if (values[i] && !is_measured(*values[i])) return counter.name + " is not a positive number";
    }
    return {};
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
        const double d = side == Side::candidate ? column.largest : -column.largest;
        if (column.worse.count > 0) {
            // The lost window's arm pays the usual cost times the largest ratio; the other one the usual
            // cost.
            const auto pairs = static_cast<double>(column.worse.count);
            const double usual = (column.reference_cost + column.candidate_cost) / (2 * pairs);
            const double paid =
                usual * std::exp(column.counter.higher_is_better ? -column.largest : column.largest);
            column.reference_cost += side == Side::reference ? paid : usual;
            column.candidate_cost += side == Side::candidate ? paid : usual;
        }
        add_difference(column, d);
    }
}

Decision Comparison::decide(const DecisionRule& rule) const {
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
    bool any_worse = false;
    for (const Column& column : columns_) {
        any_worse = any_worse || log_worse(column) > 0;
        if (!(flows_better && column.counter.name == "latency"))
            worse.offer(column, ask_worse - log_worse(column));
        if (!column.counter.guard) better.offer(column, ask_better - log_better(column));
    }
    const auto tell = [&](Judgement judgement, const Column& column) {
        return Decision{judgement,          column.counter.name,
                        column.worse.count, log_worse(column),
                        log_better(column), static_cast<std::size_t>(&column - columns_.data())};
    };
    if (worse.has_all()) return tell(Judgement::regressed, *worse.column);
    const bool clear = better.has_all() && !any_worse && better.column->worse.count >= kLeastPairs &&
                       costs_less_in_all(*better.column);
    if (clear) return tell(Judgement::improved, *better.column);
    return tell(Judgement::undecided, worse.missing < better.missing ? *worse.column : *better.column);
}

Effect Comparison::effect(std::size_t column) const {
    const auto& last = columns_.at(column).last;
    return effect_of({last.begin(), last.end()});
}

}  // namespace wq
