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

// ln(candidate) - ln(baseline) of the cost: above zero is worse, whichever way the counter counts.
double difference_of(const JudgedCounter& counter, const Readings& readings);

enum class TrialOutcome { regressed, improved, inconclusive };
std::string_view name_of(TrialOutcome outcome);

// How a trial stands: by the counter that decided, or is nearest to it.
struct Standing {
    std::string counter;
    unsigned pairs = 0;        // without dropped ones
    double log_regressed = 0;  // ln of the evidence; evidence_of() makes a number to show of it
    double log_improved = 0;
    Effect effect;
};

// Why a trial was inconclusive, by itself.
inline constexpr const char* kMaxPairsReason = "max_pairs";

struct TrialVerdict {
    TrialOutcome outcome = TrialOutcome::inconclusive;
    std::string reason;  // of an inconclusive one: one of these, or what end() was told
    Standing standing;
};

// One counter judged pair by pair until there is a verdict: the rule of `wq-tunectl ab`. It knows of no
// clock, file or workqueue.
class Trial {
  public:
    // SETTINGS within their ranges.
    Trial(const JudgeSettings& settings, JudgedCounter counter);

    // PAIR: two windows whose order a fair coin chose; its values are finite and above 0. The verdict, once
    // there is one; it stays.
    std::optional<TrialVerdict> add(const Readings& pair);
    // No more pairs will come: inconclusive for this reason, unless there is a verdict already.
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
