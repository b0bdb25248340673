// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/quantity.h"

#include <algorithm>
#include <array>
#include <compare>

namespace wq {
namespace {

using std::chrono::milliseconds;

struct Unit {
    std::string_view name;
    milliseconds length;
};
// Longest first. If two names have the same length of time, text_of() uses the first.
constexpr std::array<Unit, 6> kUnits = {{{"d", std::chrono::hours(24)},
                                         {"h", std::chrono::hours(1)},
                                         {"min", std::chrono::minutes(1)},
                                         {"m", std::chrono::minutes(1)},
                                         {"s", std::chrono::seconds(1)},
                                         {"ms", milliseconds(1)}}};

constexpr unsigned kMinutesOfDay = 24 * 60;
constexpr std::size_t kMostNumbers = 4;  // in a version in the policy

// Removes the leading CHARACTERS from TEXT and returns them.
std::string_view take(std::string_view& text, std::string_view characters) {
    const std::string_view taken = text.substr(0, text.find_first_not_of(characters));
    text.remove_prefix(taken.size());
    return taken;
}

// "HH:MM" in minutes; kMinutesOfDay + 1 if TEXT is not a time of the day, up to 24:00.
unsigned clock_of(std::string_view text) {
    const auto hour = number_of<unsigned>(text.substr(0, 2));
    const auto minute = number_of<unsigned>(text.substr(3));
    const bool valid = text[2] == ':' && hour && minute && *hour <= 24 && *minute < 60;
    return valid ? std::min(*hour * 60 + *minute, kMinutesOfDay + 1) : kMinutesOfDay + 1;
}

// Parses numbers separated by dots at the start of TEXT and removes them from TEXT.
Numbers take_numbers(std::string_view& text) {
    Numbers numbers;
    for (std::string_view rest = text;; rest.remove_prefix(1)) {
        const auto number = number_of<unsigned>(take(rest, "0123456789"));
        if (!number) return numbers;
        numbers.push_back(*number);
        text = rest;
        if (!rest.starts_with('.')) return numbers;
    }
}

// All of TEXT as 1 to MOST numbers, or none.
Numbers numbers_in(std::string_view text, std::size_t most) {
    take(text, " ");
    Numbers numbers = take_numbers(text);
    take(text, " ");
    return text.empty() && numbers.size() <= most ? numbers : Numbers{};
}

// Compares as many numbers as BOUND has; missing ones in NUMBERS are 0.
auto compare(Numbers numbers, const Numbers& bound) {
    numbers.resize(bound.size());
    return numbers <=> bound;
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
    const auto refused = fail(fmt::format(
        "must be a time with its unit (ms, s, m or min, h, d), such as \"1h 30min\", of at most {}",
        text_of(kMaxDuration)));
    if (text.ends_with(' ')) return refused;
    milliseconds sum{0};
    do {
        const auto number = number_of<milliseconds::rep>(take(text, "0123456789"));
        take(text, " ");
        const auto* unit = std::ranges::find(kUnits, take(text, "abcdefghijklmnopqrstuvwxyz"), &Unit::name);
        if (!number || unit == kUnits.end() || *number > (kMaxDuration - sum) / unit->length) return refused;
        sum += *number * unit->length;
        take(text, " ");
    } while (!text.empty());
    return sum;
}

Result<double> parse_percentage(std::string_view text) {
    const auto percent =
        text.ends_with('%') ? number_of<double>(text.substr(0, text.size() - 1)) : std::nullopt;
    if (percent && *percent >= 0 && *percent <= 100) return *percent / 100;  // NaN compares false
    return fail("must be 0% to 100%, with its percent sign");
}

Result<Hours> parse_hours(std::string_view text) {
    if (text.size() == 11 && text[5] == '-') {
        const Hours hours{clock_of(text.substr(0, 5)), clock_of(text.substr(6))};
        if (hours.begin < kMinutesOfDay && hours.end <= kMinutesOfDay && hours.begin != hours.end)
            return hours;
    }
    return fail("must be a part of the day, such as \"22:00-06:00\" or \"00:00-24:00\"");
}

bool is_date(std::string_view text) {
    using namespace std::chrono;
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    const auto y = number_of<unsigned>(text.substr(0, 4));
    const auto m = number_of<unsigned>(text.substr(5, 2));
    const auto d = number_of<unsigned>(text.substr(8));
    return y && m && d && *y >= 2000 && (year(static_cast<int>(*y)) / month(*m) / day(*d)).ok();
}

Result<double> parse_alpha(std::string_view text) {
    const auto value = number_of<double>(text);
    if (value && *value > 0 && *value <= kMaxAlpha) return *value;
    return fail(fmt::format("must be above 0 and at most {}", kMaxAlpha));
}

std::string text_of(milliseconds duration) {
    std::string out;
    for (const Unit& unit : kUnits) {
        const auto number = duration / unit.length;
        if (number == 0) continue;
        out += fmt::format("{}{}{}", out.empty() ? "" : " ", number, unit.name);
        duration -= number * unit.length;
    }
    return out.empty() ? "0s" : out;
}

std::string hours_text(const Hours& hours) {
    return fmt::format("{:02}:{:02}-{:02}:{:02}", hours.begin / 60, hours.begin % 60, hours.end / 60,
                       hours.end % 60);
}

std::string percentage_text(double share) {
    return fmt::format("{:.15g}%", share * 100);
}

Numbers leading_numbers(std::string_view release) {
    return take_numbers(release);
}

Result<bool> in_range(const Numbers& numbers, std::string_view range, bool versions) {
    static constexpr std::array<std::string_view, 5> kSigns = {"", "<", "<=", ">", ">="};
    bool inside = true;
    for (const std::string& each : split_at_commas(range)) {
        std::string_view part = each;
        take(part, " ");
        const std::string_view sign = take(part, "<>=");
        const std::size_t dash = sign.empty() ? part.find('-') : std::string_view::npos;
        const Numbers low = numbers_in(part.substr(0, dash), versions ? kMostNumbers : 1);
        const Numbers high = dash == std::string_view::npos
                                 ? low
                                 : numbers_in(part.substr(dash + 1), versions ? kMostNumbers : 1);
        if (low.empty() || high.empty() || compare(low, high) > 0 ||
            std::ranges::find(kSigns, sign) == kSigns.end())
            return fail(
                versions ? "must be a version or a range of them, such as \">=6.6\", \"6.12\" or \"6.6-7.0\""
                         : "must be a whole number or a range, such as \">=16\", \"8-16\" or \">=8,<64\"");
        const auto to_low = compare(numbers, low), to_high = compare(numbers, high);
        inside = inside && (sign == "<"    ? to_low < 0
                            : sign == "<=" ? to_low <= 0
                            : sign == ">"  ? to_low > 0
                                           : to_low >= 0 && (sign == ">=" || to_high <= 0));
    }
    return inside;
}

}  // namespace wq
