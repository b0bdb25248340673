// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/policy.h"

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

// In the format of parse_duration(): "1h 30min", "0s".
std::string text_of(std::chrono::milliseconds duration);
// SHARE as a percentage, with as few decimals as possible such that parse_percentage() returns exactly SHARE.
std::string percentage_text(double share);

}  // namespace wq
