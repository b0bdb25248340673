// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
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
// "0.05": above 0, at most kMaxAlpha.
Result<double> parse_alpha(std::string_view text);
// A whole number from 1 to MOST.
template <class T, T most>
Result<T> parse_count(std::string_view text) {
    const auto number = number_of<T>(text);
    if (number && *number >= 1 && *number <= most) return *number;
    return fail(fmt::format("must be 1 to {}", most));
}
// Whether TEXT is a day of the calendar, from the year 2000 on: "2027-01-31".
bool is_date(std::string_view text);

// In the format of parse_duration(): "1h 30min", "0s".
std::string text_of(std::chrono::milliseconds duration);
// In the format of parse_hours().
std::string hours_text(const Hours& hours);
// SHARE as a percentage, as parse_percentage() reads it, with at most 15 digits.
std::string percentage_text(double share);

// A number, or the numbers in a version: "6.12.57" is 6, 12, 57.
using Numbers = std::vector<unsigned>;
// The numbers at the start of a kernel release: "6.12.57+deb13" is 6, 12, 57. Empty if there are none.
Numbers leading_numbers(std::string_view release);
// Whether NUMBERS are in RANGE, of numbers or of VERSIONS: "12", "8-16", ">=16", ">8", "<=16", "<64", or
// several joined with commas, which must all be true: ">=8,<64". Only as many numbers as the bound has are
// compared: "6.12" contains every 6.12.x, "<=7.0" contains 7.0.5, ">6.6" starts at 6.7.
Result<bool> in_range(const Numbers& numbers, std::string_view range, bool versions);

}  // namespace wq
