// SPDX-License-Identifier: LGPL-2.1-or-later
#include "judge/trial.h"

#include <cmath>
#include <utility>

#include "evidence/comparison.h"

// evidence/comparison.cpp explains the random choice, the e-values and the tolerance. This rule differs,
// because somebody waits for it and there are few pairs:
// - One counter. Both `regressed` and `improved` take an e-value of 1 / alpha, with alpha as given: it is not
//   divided among counters or candidates.
// - Five stakes, from 1/2 (EProcess::log_of_large_stakes()): the e-values of smaller ones hardly grow in the
//   16 pairs that `ab` runs by default.
// - `improved` needs neither a minimum of pairs nor a lower sum of costs. As there, the e-value of "worse"
//   must not be above 1.
// - It ends: at the first verdict, which stays, or after max_pairs. No window counts as lost.

namespace wq {

double difference_of(const JudgedCounter& counter, const Readings& r) {
    return log_ratio({counter.name, counter.higher_is_better, 0, false}, {r.baseline, r.candidate});
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

Trial::Trial(const JudgeSettings& settings, JudgedCounter counter)
    : settings_(settings), counter_(std::move(counter)) {}

std::optional<TrialVerdict> Trial::add(const Readings& pair) {
    if (verdict_) return verdict_;
    const double d = difference_of(counter_, pair);
    differences_.push_back(d);
    regressed_.add(d - std::log1p(settings_.tolerance));
    improved_.add(-d);
    return verdict_ = decide();
}

TrialVerdict Trial::end(const std::string& reason) {
    if (!verdict_) verdict_ = TrialVerdict{TrialOutcome::inconclusive, reason, standing()};
    return *verdict_;
}

std::optional<TrialVerdict> Trial::decide() const {
    const double enough = -std::log(settings_.alpha);
    const double worse = regressed_.log_of_large_stakes();
    if (worse >= enough) return TrialVerdict{TrialOutcome::regressed, "", standing()};
    if (improved_.log_of_large_stakes() >= enough && worse <= 0)
        return TrialVerdict{TrialOutcome::improved, "", standing()};
    if (differences_.size() >= settings_.max_pairs)
        return TrialVerdict{TrialOutcome::inconclusive, kMaxPairsReason, standing()};
    return {};
}

Standing Trial::standing() const {
    return {counter_.name, static_cast<unsigned>(differences_.size()), regressed_.log_of_large_stakes(),
            improved_.log_of_large_stakes(), effect_of(differences_)};
}

}  // namespace wq
