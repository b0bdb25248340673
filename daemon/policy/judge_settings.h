// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wq {

// A quantity that is compared. Lower is better unless `higher_is_better`.
struct JudgedCounter {
    std::string name;
    bool higher_is_better = false;
    friend bool operator==(const JudgedCounter&, const JudgedCounter&) = default;
};

// Settings of a comparison: [judge] of the policy, or the options of `wq-tunectl judge`.
struct JudgeSettings {
    double alpha = 0.05;          // of this comparison; above 0, at most kMaxAlpha
    double tolerance = 0;         // fraction 0..1: a cost increase up to this is not called regressed
    unsigned max_pairs = 16;      // 1..kMaxPairs, without dropped pairs
    std::uint64_t min_items = 0;  // per window; a pair with fewer in both windows is dropped
    friend bool operator==(const JudgeSettings&, const JudgeSettings&) = default;
};

inline constexpr double kMaxAlpha = 0.5;
inline constexpr unsigned kMaxPairs = 10'000;
inline constexpr unsigned kMaxCandidates = 100;
inline constexpr std::uint64_t kMaxRunLength = 1'000'000'000;  // pairs

// Each parses one setting without surrounding text: "0.05", "5%", "16". The error says what is allowed.
Result<double> parse_alpha(std::string_view text);
Result<double> parse_tolerance(std::string_view text);
Result<unsigned> parse_max_pairs(std::string_view text);
Result<unsigned> parse_candidates(std::string_view text);
Result<std::uint64_t> parse_run_length(std::string_view text);

}  // namespace wq
