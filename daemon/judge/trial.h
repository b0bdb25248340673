// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evidence/effect.h"
#include "judge/evidence.h"
#include "model/judge_settings.h"

namespace wq {

// One counter in the two windows of a pair.
struct Readings {
    double baseline = 0;
    double candidate = 0;
};

// ln(candidate) - ln(baseline) of the cost: above zero is worse, whichever way the counter counts.
double difference_of(const JudgedCounter& counter, const Readings& readings);

// Two adjacent windows whose order a fair coin chose.
struct WindowPair {
    std::vector<Readings> readings;      // as many as the trial has counters, in their order
    std::optional<std::uint64_t> items;  // seen in both windows together, where items are counted
};

enum class TrialOutcome { regressed, improved, inconclusive };
std::string_view name_of(TrialOutcome outcome);

// How a trial stands: by the counter that decided, or is nearest to it.
struct Standing {
    std::string counter;
    unsigned pairs = 0;        // used, dropped ones not counted
    double log_regressed = 0;  // ln of the evidence; evidence_of() makes a number to show of it
    double log_improved = 0;
    Effect effect;
};

// Why a trial was inconclusive, by itself.
inline constexpr const char* kEmergencyReason = "emergency";
inline constexpr const char* kMaxPairsReason = "max_pairs";

struct TrialVerdict {
    TrialOutcome outcome = TrialOutcome::inconclusive;
    std::string reason;  // of an inconclusive one: one of these, or what end() was told
    Standing standing;
};

// One trial, fed pair by pair until it has a verdict. It knows of no clock, file or workqueue.
class Trial {
  public:
    // SETTINGS within their ranges; at least one counter.
    Trial(const JudgeSettings& settings, std::vector<JudgedCounter> counters);

    // Uses a pair, or drops it with a reason. The verdict, once there is one; it stays.
    std::optional<TrialVerdict> add(const WindowPair& pair);
    // A pair that was not measured to its end, or under two different machines: suspend, hotplug, clock jump.
    void drop(const std::string& reason) { dropped_[reason]++; }
    // No more pairs will come: inconclusive for this reason, unless there is a verdict already.
    TrialVerdict end(const std::string& reason);

    // Why this pair would be dropped; empty if it would be used. Decided by the number of items first, and in
    // all by what treats both windows alike, so that dropping favours neither arm.
    [[nodiscard]] std::string why_dropped(const WindowPair& pair) const;
    [[nodiscard]] const std::map<std::string, unsigned>& dropped() const { return dropped_; }  // by reason
    [[nodiscard]] Standing standing() const;

  private:
    struct Column {
        JudgedCounter counter;
        Evidence regressed = {};
        Evidence improved = {};
        std::vector<double> differences = {};
    };

    void use(const WindowPair& pair);
    std::optional<TrialVerdict> decide() const;
    [[nodiscard]] const Column& most_regressed() const;
    [[nodiscard]] const Column& most_improved() const;
    [[nodiscard]] TrialVerdict verdict(TrialOutcome outcome, std::string reason, const Column& column) const;
    [[nodiscard]] Standing standing(const Column& column) const;

    JudgeSettings settings_;
    double enough_;  // ln of the evidence that decides
    std::vector<Column> columns_;
    std::map<std::string, unsigned> dropped_;
    std::optional<TrialVerdict> verdict_;
    unsigned pairs_ = 0;
};

}  // namespace wq
