// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/lab/ab_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

// Why a random order of all arms is a fair random choice for each pair
// ====================================================================
//
// evidence/comparison.cpp explains why a verdict is valid: a fair random choice decides which window of a
// pair is the candidate's. Two arms in random order are such a pair. With more arms, a round is a random
// order of all arms, and each pair is the reference's window and one candidate's. Take any order and swap the
// reference and that candidate: each order has exactly one such partner, and both have the same probability.
// So for any two places, and any places of the other arms, both assignments have probability 1/2. If the
// candidate has no effect, the swap changes no measured number, including those of the other arms. So given
// all sizes, both signs of the difference have probability 1/2. The e-value needs nothing else.
//
// The two windows need not be adjacent: drift between them adds noise but no bias. The pairs of two
// candidates share the reference's windows, so their verdicts depend on each other. Alpha applies to each
// candidate and each side separately: with n candidates without effect, the probability of at least one
// wrong verdict is at most 2 n alpha. Only past rounds decide which arms take part in a round, and the
// argument holds for any given past.

namespace wq::ab {

std::vector<std::size_t> random_order(std::size_t count, const Random& random) {
    // Rejects the highest numbers, which would make some remainders more probable.
    const auto below = [&](std::uint64_t n) {
        const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / n * n;
        for (;;)
            if (const std::uint64_t value = random(); value < limit) return value % n;
    };
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; i--) std::swap(order[i - 1], order[below(i)]);
    return order;
}

Comparison::Comparison(std::size_t arms, const JudgeSettings& settings, ComparedCounter counter,
                       bool all_pairs)
    : counter_(std::move(counter)),
      rule_{settings.alpha, 1, true},
      max_rounds_(settings.max_pairs),
      all_pairs_(all_pairs),
      values_(arms) {
    counter_.tolerance = settings.tolerance;
    candidates_.assign(arms - 1, Candidate{wq::Comparison({counter_})});
}

bool Comparison::is_over() const {
    if (rounds_ >= max_rounds_) return true;
    return !all_pairs_ && std::all_of(candidates_.begin(), candidates_.end(),
                                      [](const Candidate& c) { return c.verdict.has_value(); });
}

std::vector<std::size_t> Comparison::next_round(const Random& random) const {
    if (is_over()) return {};
    std::vector<std::size_t> running{0};
    for (std::size_t i = 0; i < candidates_.size(); i++)
        if (all_pairs_ || !candidates_[i].verdict) running.push_back(i + 1);
    std::vector<std::size_t> out;
    for (const std::size_t place : random_order(running.size(), random)) out.push_back(running[place]);
    return out;
}

void Comparison::add(const std::map<std::size_t, double>& values) {
    rounds_++;
    for (const auto& [arm, value] : values) {
        values_.at(arm).push_back(value);
        if (arm == 0) continue;
        Candidate& candidate = candidates_.at(arm - 1);
        candidate.pairs.push_back({values.at(0), value});
        if (candidate.verdict) continue;
        candidate.comparison.add({candidate.pairs.back()});
        const Decision decision = candidate.comparison.decide(rule_);
        if (decision.judgement != Judgement::undecided)
            candidate.verdict = Verdict{decision, ""};
        else if (rounds_ >= max_rounds_)
            candidate.verdict = Verdict{decision, kMaxPairsReason};
    }
}

void Comparison::end(const std::string& reason) {
    for (Candidate& candidate : candidates_)
        if (!candidate.verdict) candidate.verdict = Verdict{candidate.comparison.decide(rule_), reason};
}

const std::optional<Verdict>& Comparison::verdict(std::size_t arm) const {
    return candidates_.at(arm - 1).verdict;
}

const std::vector<PairValues>& Comparison::pairs(std::size_t arm) const {
    return candidates_.at(arm - 1).pairs;
}

Decision Comparison::decision(std::size_t arm) const {
    const Candidate& candidate = candidates_.at(arm - 1);
    return candidate.verdict ? candidate.verdict->decision : candidate.comparison.decide(rule_);
}

Effect Comparison::effect(std::size_t arm) const {
    std::vector<double> differences;
    for (const PairValues& pair : pairs(arm)) differences.push_back(log_ratio(counter_, pair));
    return effect_of(std::move(differences));
}

Summary summary_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    Summary out;
    const std::size_t n = values.size();
    out.min = values.front();
    out.max = values.back();
    out.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    out.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    double squares = 0;
    for (const double value : values) squares += (value - out.mean) * (value - out.mean);
    if (n > 1) out.deviation = std::sqrt(squares / static_cast<double>(n - 1));
    return out;
}

}  // namespace wq::ab
