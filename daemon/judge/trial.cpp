// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/trial.h"

#include <algorithm>
#include <cmath>

// How a change is judged, and why that may be believed
// ====================================================
//
// The question is whether a change made something cost more, where the effect is a few percent, and so is the
// noise, which drifts, comes in bursts and remembers itself. Whoever compares before with after measures the
// drift. Whoever computes a standard deviation of it assumes what does not hold. So nothing is assumed here
// about the noise; the one thing known for sure is the coin that we toss ourselves.
//
// The coin. A pair is two adjacent windows of time. The coin decides which of them runs under the candidate.
// Suppose that the change does nothing: the machine would have shown the same two numbers whichever arm's
// name stands on which window. Then our coin decides only which of the two is called the candidate's, that
// is, the sign of d = ln(candidate) - ln(baseline). Given everything that happened before, and given |d|, the
// sign is a fair coin: heavy tails, drift and memory are all in |d| and in the past, and may be what they
// like. (That is Fisher's argument for randomization, of 1935.)
//
// The bet. A gambler who starts with 1 stakes, at pair i, the share tanh(k|x|/2r) of what he has on "x is
// above zero", x being d. His capital is multiplied by 1 + tanh(kx/2r) = 2 / (1 + exp(-kx/r)): the factor of
// Evidence. He may look at |x| before, and at all that is past, so r, the root mean square of x_1..x_i, is
// known to him: x_i enters by its square. The two factors that a fair coin can bring, for +|x| and for -|x|,
// add up to 2, so that on the average his capital stays what it is: a martingale, above zero, starting at 1.
// Ville (1939) showed that such a one ever reaches c with probability 1/c at most. "Ever" is the point: we
// look after each pair and stop when we like, and the bound holds, which no fixed-size test would forgive.
// So, E >= 1/alpha: either the change does harm, or something happened that has probability alpha at most.
// (Shafer, "Testing by betting", 2021; Shafer and Vovk, "Game-Theoretic Foundations for Probability and
// Finance", 2019; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024.)
//
// Tolerance. With t > 0, x = d - ln(1+t). For a fair sign of d, the gain of the one side meets a loss of the
// other that is larger, as |x|/r grows with |x| where the past is fixed: a supermartingale, the bound holds
// all the more. A change that costs a share of t or less, the same in each window, is covered likewise.
//
// Why five stakes. What stake wins most depends on how the effect compares with the noise, which nobody knows
// before. A bold one (k = 8) doubles nearly each time while all signs agree, and is ruined by one that does
// not; a timid one (k = 1/2) survives that and takes long. The mean of martingales is one, and of five equal
// parts the best needs but 5 times the capital: ln(5) of evidence is what not knowing costs. The factor is at
// most 2, so that log2(m/alpha) pairs are needed, whatever the effect.
//
// Several counters. Each of the m is asked on its own for m/alpha, since by chance one of m is wrong up to m
// times as often as one alone (a union bound: counters of the same windows depend on each other in ways
// nobody knows). That is log2(m) pairs more at the least, paid by every counter for the sake of each. Judge
// by few.
//
// Again and again. The n-th trial of the same arms is given alpha / (n (n+1)), the sum of which over all n is
// alpha: a harmless change that is tried every week for ever is reverted, ever, with probability alpha at
// most. The price: 2^max_pairs is all the evidence that there can be, so that late attempts cannot decide.
//
// What is assumed
// - The coin is fair, and nothing that shapes the load knows of it.
// - Both arms are treated alike but for the setting itself. Hence every window begins with a write, and a
//   pair is dropped only for reasons that treat its two windows alike.
// - "The change does nothing" is what alpha is about. A change that helps in one window and harms in the
// other,
//   or leaves something behind for the next window (hence the washout), is outside of it.
//
// What is not promised
// - That harm is found. A regression too small for max_pairs, or in what is not counted, or under tomorrow's
//   load, stays. `inconclusive` is no proof of innocence.
// - That the effect is as large as it is said to be: the trial stopped because it looked large.

namespace wq {
namespace {

bool measured(double value) {
    return std::isfinite(value) && value > 0;
}

}  // namespace

double difference_of(const JudgedCounter& counter, const Readings& r) {
    return counter.higher_is_better ? std::log(r.baseline) - std::log(r.candidate)
                                    : std::log(r.candidate) - std::log(r.baseline);
}

std::string_view name_of(TrialOutcome outcome) {
    switch (outcome) {
        case TrialOutcome::regressed:
            return "regressed";
        case TrialOutcome::improved:
            return "improved";
        case TrialOutcome::inconclusive:
            break;
    }
    return "undecided";
}

Trial::Trial(const JudgeSettings& settings, std::vector<JudgedCounter> counters)
    : settings_(settings),
      enough_(std::log(static_cast<double>(counters.size())) - std::log(settings.alpha)) {
    for (JudgedCounter& counter : counters) columns_.push_back({std::move(counter)});
}

std::string Trial::why_dropped(const WindowPair& pair) const {
    if (pair.items && *pair.items / 2 < settings_.min_items) return "too few items";
    if (pair.readings.size() != columns_.size()) return "not all counters were read";
    for (std::size_t i = 0; i < columns_.size(); i++)
        if (!measured(pair.readings[i].baseline) || !measured(pair.readings[i].candidate))
            return columns_[i].counter.name + " is not a positive number";
    return {};
}

std::optional<TrialVerdict> Trial::add(const WindowPair& pair) {
    if (verdict_) return verdict_;
    if (const std::string reason = why_dropped(pair); !reason.empty()) {
        drop(reason);
        return {};
    }
    use(pair);
    return verdict_ = decide();
}

TrialVerdict Trial::end(const std::string& reason) {
    if (!verdict_) verdict_ = TrialVerdict{TrialOutcome::inconclusive, reason, standing()};
    return *verdict_;
}

void Trial::use(const WindowPair& pair) {
    pairs_++;
    for (std::size_t i = 0; i < columns_.size(); i++) {
        Column& column = columns_[i];
        const double d = difference_of(column.counter, pair.readings[i]);
        column.differences.push_back(d);
        column.regressed.add(d - std::log1p(settings_.tolerance));
        column.improved.add(-d);
    }
}

std::optional<TrialVerdict> Trial::decide() const {
    const Column& worst = most_regressed();
    if (worst.regressed.log() >= enough_) return verdict(TrialOutcome::regressed, "", worst);
    const Column& best = most_improved();
    if (best.improved.log() >= enough_ && worst.regressed.log() <= 0)
        return verdict(TrialOutcome::improved, "", best);
    if (pairs_ >= settings_.max_pairs)
        return TrialVerdict{TrialOutcome::inconclusive, kMaxPairsReason, standing()};
    return {};
}

const Trial::Column& Trial::most_regressed() const {
    return *std::max_element(columns_.begin(), columns_.end(), [](const Column& a, const Column& b) {
        return a.regressed.log() < b.regressed.log();
    });
}

const Trial::Column& Trial::most_improved() const {
    return *std::max_element(columns_.begin(), columns_.end(), [](const Column& a, const Column& b) {
        return a.improved.log() < b.improved.log();
    });
}

TrialVerdict Trial::verdict(TrialOutcome outcome, std::string reason, const Column& column) const {
    return {outcome, std::move(reason), standing(column)};
}

Standing Trial::standing() const {
    const Column& worst = most_regressed();
    const Column& best = most_improved();
    return standing(worst.regressed.log() >= best.improved.log() ? worst : best);
}

Standing Trial::standing(const Column& column) const {
    return {column.counter.name, pairs_, column.regressed.log(), column.improved.log(),
            effect_of(column.differences)};
}

}  // namespace wq
