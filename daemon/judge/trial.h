// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/e_process.h"
#include "evidence/effect.h"
#include "judge/evidence.h"
#include "model/judge_settings.h"

namespace wq {

// One counter in a pair: two adjacent windows, one under each arm.
struct Readings {
    double baseline = 0;
    double candidate = 0;
};

// ln(candidate) - ln(baseline) of the cost: positive is worse, also if higher is better for the counter.
double difference_of(const JudgedCounter& counter, const Readings& readings);

enum class TrialOutcome { regressed, improved, inconclusive };
std::string_view name_of(TrialOutcome outcome);

// The state of a trial, by the counter that decided or is nearest to a decision.
struct Standing {
    std::string counter;
    unsigned pairs = 0;        // without dropped ones
    double log_regressed = 0;  // ln of the e-value; evidence_of() converts it for display
    double log_improved = 0;
    Effect effect;
};

// The reason if a trial ended inconclusive by itself.
inline constexpr const char* kMaxPairsReason = "max_pairs";

struct TrialVerdict {
    TrialOutcome outcome = TrialOutcome::inconclusive;
    std::string reason;  // if inconclusive: kMaxPairsReason, or the argument of end()
    Standing standing;
};

// Judges one counter pair by pair until there is a verdict: the rule of `wq-tunectl ab`. It uses no clock,
// file or workqueue.
class Trial {
  public:
    // SETTINGS must be within their ranges.
    Trial(const JudgeSettings& settings, JudgedCounter counter);

    // PAIR: two windows whose order a fair coin chose; its values must be finite and above 0. Returns the
    // verdict once there is one; later pairs do not change it.
    std::optional<TrialVerdict> add(const Readings& pair);
    // Ends the trial: inconclusive for this REASON, unless there is a verdict already.
    TrialVerdict end(const std::string& reason);

    [[nodiscard]] Standing standing() const;

  private:
    [[nodiscard]] std::optional<TrialVerdict> decide() const;

    JudgeSettings settings_;
    JudgedCounter counter_;
    EProcess regressed_;
    EProcess improved_;
    std::vector<double> differences_;
    std::optional<TrialVerdict> verdict_;
};

}  // namespace wq
