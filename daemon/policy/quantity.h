// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/policy.h"

namespace wq {

// The longest time that is read. Years are not a unit, since they differ: 3650 days stand for ten of them.
inline constexpr std::chrono::hours kMaxDuration{10 * 365 * 24};

// Each reads all of TEXT. An error says what it had to be, after the name of it: "must be ...".

// "500ms", "90 min", "1h 30min": whole numbers, each with its unit (ms, s, m or min, h, d), added up.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// "2.5%" is 0.025. From 0% to 100%.
Result<double> parse_percentage(std::string_view text);
// "22:00-06:00": from 00:00-... to ...-24:00, and begin and end differ.
Result<Hours> parse_hours(std::string_view text);

// As parse_duration() would read it: "1h 30min", "0s".
std::string text_of(std::chrono::milliseconds duration);

}  // namespace wq
