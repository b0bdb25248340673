// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace wq {

// The longest accepted time. Years are not a unit, because their length differs: 3650 days stand for ten
// years.
inline constexpr std::chrono::hours kMaxDuration{10 * 365 * 24};

// Each function parses all of TEXT. The error text follows the name of the key: "must be ...".

// "500ms", "90 min", "1h 30min": a sum of whole numbers, each with a unit (ms, s, m or min, h, d).
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// "2.5%" is 0.025. From 0% to 100%.
Result<double> parse_percentage(std::string_view text);
// "22:00-06:00": the begin is 00:00 or later, the end is 24:00 or earlier, and they differ.
Result<Hours> parse_hours(std::string_view text);
// "2027-01-31": a day of the calendar, from the year 2000 on.
Result<std::string> parse_date(std::string_view text);

// "0.05": above 0, at most kMaxAlpha. Of this and the next ones, the error is a sentence for the command
// line.
Result<double> parse_alpha(std::string_view text);
Result<double> parse_tolerance(std::string_view text);  // "5%"
Result<unsigned> parse_max_pairs(std::string_view text);
Result<unsigned> parse_candidates(std::string_view text);
Result<std::uint64_t> parse_run_length(std::string_view text);

// In the format of parse_duration(): "1h 30min", "0s".
std::string text_of(std::chrono::milliseconds duration);
// In the format of parse_hours().
std::string hours_text(const Hours& hours);
// SHARE as a percentage, with as few decimals as possible such that parse_percentage() returns exactly SHARE.
std::string percentage_text(double share);

// A number, or the numbers in a version: "6.12.57" is 6, 12, 57.
using Numbers = std::vector<unsigned>;

// A range of numbers or versions: "12", "8-16", ">=16", ">8", "<=16", "<64", or several joined with commas,
// which must all be true: ">=8,<64". Only as many numbers as the bound has are compared: "6.12" contains
// every 6.12.x, "<=7.0" contains 7.0.5, ">6.6" starts at 6.7.
class NumberRange {
  public:
    // Parses all of TEXT. The error describes the valid values: "must be ...".
    static Result<NumberRange> of_numbers(std::string_view text);
    static Result<NumberRange> of_versions(std::string_view text);

    [[nodiscard]] bool has(const Numbers& numbers) const;

  private:
    struct Bound {
        Numbers numbers;
        bool is_upper;
        bool is_inside;
    };
    static bool parse(std::string_view text, std::size_t most, NumberRange& range);
    bool add(std::string_view part, std::size_t most);

    std::vector<Bound> bounds_;
};

// The numbers at the start of a kernel release: "6.12.57+deb13" is 6, 12, 57. Empty if there are none.
Numbers leading_numbers(std::string_view release);

}  // namespace wq
