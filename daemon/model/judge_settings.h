// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wq {

// A quantity that a trial is judged by: a cost, unless more of it is better.
struct JudgedCounter {
    std::string name;
    bool higher_is_better = false;
    friend bool operator==(const JudgedCounter&, const JudgedCounter&) = default;
};

// What a trial is judged by: [judge] of the policy, or the options of `wq-tunectl judge`.
struct JudgeSettings {
    double alpha = 0.05;          // of this one trial; above 0, at most kMaxAlpha
    double tolerance = 0;         // a share, 0..1: a change no worse than this is not to be called regressed
    unsigned max_pairs = 16;      // 1..kMaxPairs, dropped ones not counted
    std::uint64_t min_items = 0;  // per window, see Trial::why_dropped
    bool emergency = true;        // whether what looks like a disaster ends it
    friend bool operator==(const JudgeSettings&, const JudgeSettings&) = default;
};

// What the n-th trial of the same arms, counted from 1, may use of an alpha that is to last for all of them:
// alpha / (n (n+1)), the sum of which over all n is alpha.
double lifetime_alpha(double alpha, unsigned n);

inline constexpr double kMaxAlpha = 0.5;
inline constexpr unsigned kMaxPairs = 10'000;
inline constexpr unsigned kMaxCandidates = 100;
inline constexpr std::uint64_t kMaxRunLength = 1'000'000'000;  // pairs

// Each reads one setting as it is written, with nothing before or after it: "0.05", "5%", "16". The error
// says what is allowed.
Result<double> parse_alpha(std::string_view text);
Result<double> parse_tolerance(std::string_view text);
Result<unsigned> parse_max_pairs(std::string_view text);
Result<unsigned> parse_candidates(std::string_view text);
Result<std::uint64_t> parse_run_length(std::string_view text);

}  // namespace wq
