// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/quantity.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <optional>
#include <utility>

#include "base/text.h"

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
constexpr const char* kUnitNames = "ms, s, m or min, h, d";

constexpr unsigned kMinutesOfDay = 24 * 60;  // minutes

// Removes the leading CHARACTERS from TEXT and returns them.
std::string_view take(std::string_view& text, std::string_view characters) {
    const std::string_view taken = text.substr(0, text.find_first_not_of(characters));
    text.remove_prefix(taken.size());
    return taken;
}

tl::unexpected<Error> not_a_duration() {
    return fail(fmt::format("must be a time with its unit ({}), such as \"1h 30min\"", kUnitNames));
}

tl::unexpected<Error> too_long() {
    return fail(fmt::format("must be at most {}", text_of(kMaxDuration)));
}

// Parses a number and its unit at the start of TEXT and removes them from TEXT.
Result<milliseconds> take_part(std::string_view& text) {
    const std::string_view digits = take(text, "0123456789");
    take(text, " ");
    const auto* unit = std::ranges::find(kUnits, take(text, "abcdefghijklmnopqrstuvwxyz"), &Unit::name);
    if (digits.empty() || unit == kUnits.end()) return not_a_duration();
    const auto number = number_of<milliseconds::rep>(digits);
    if (!number || *number > milliseconds(kMaxDuration) / unit->length) return too_long();
    return *number * unit->length;
}

// Parses "HH:MM", up to 24:00, as minutes.
bool read_clock(std::string_view text, unsigned& minutes) {
    if (text.size() != 5 || text[2] != ':') return false;
    const auto hour = number_of<unsigned>(text.substr(0, 2));
    const auto minute = number_of<unsigned>(text.substr(3));
    if (!hour || !minute) return false;
    minutes = *hour * 60 + *minute;
    return *minute < 60 && minutes <= kMinutesOfDay;
}

// Parses all of TEXT as a whole number in 1..MOST. The error is WHAT and these bounds.
template <class T>
Result<T> parse_count(std::string_view text, T most, const std::string& what) {
    const auto number = number_of<T>(text);
    if (number && *number >= 1 && *number <= most) return *number;
    return fail(what + "must be 1 to " + std::to_string(most));
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
    if (text.ends_with(' ')) return not_a_duration();
    milliseconds sum{0};
    do {
        auto part = take_part(text);
        if (!part) return part;
        sum += *part;
        if (sum > kMaxDuration) return too_long();
        take(text, " ");
    } while (!text.empty());
    return sum;
}

Result<double> parse_percentage(std::string_view text) {
    const auto share = percentage_of(text);
    return share ? Result<double>(*share) : fail("must be 0% to 100%, with its percent sign");
}

Result<Hours> parse_hours(std::string_view text) {
    Hours hours;
    if (text.size() != 11 || text[5] != '-' || !read_clock(text.substr(0, 5), hours.begin) ||
        !read_clock(text.substr(6), hours.end) || hours.begin == kMinutesOfDay)
        return fail("must be a part of the day, such as \"22:00-06:00\" or \"00:00-24:00\"");
    if (hours.begin == hours.end)
        return fail("must begin and end at different times (all day is \"00:00-24:00\")");
    return hours;
}

Result<std::string> parse_date(std::string_view text) {
    using namespace std::chrono;
    if (text.size() == 10 && text[4] == '-' && text[7] == '-') {
        const auto y = number_of<unsigned>(text.substr(0, 4));
        const auto m = number_of<unsigned>(text.substr(5, 2));
        const auto d = number_of<unsigned>(text.substr(8));
        if (y && m && d && *y >= 2000 && (year(static_cast<int>(*y)) / month(*m) / day(*d)).ok())
            return std::string(text);
    }
    return fail("must be a day, such as \"2027-01-31\"");
}

Result<double> parse_alpha(std::string_view text) {
    const auto value = number_of<double>(text);
    if (value && *value > 0 && *value <= kMaxAlpha) return *value;
    return fail("alpha must be above 0 and at most 0.5");
}

Result<double> parse_tolerance(std::string_view text) {
    return parse_percentage(text).map_error([](const Error& error) {
        return Error{0, "tolerance " + error.text};
    });
}

Result<unsigned> parse_max_pairs(std::string_view text) {
    return parse_count(text, kMaxPairs, "");
}

Result<unsigned> parse_candidates(std::string_view text) {
    return parse_count(text, kMaxCandidates, "candidates ");
}

Result<std::uint64_t> parse_run_length(std::string_view text) {
    return parse_count(text, kMaxRunLength, "run-length ");
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
    const auto reads_back = [&](const std::string& text) {
        const auto read = parse_percentage(text);
        return read && *read == share;
    };
    const double percent = share * 100;
    for (int decimals = 0; decimals <= 17; decimals++)
        if (auto text = fmt::format("{:.{}f}%", percent, decimals); reads_back(text)) return text;
    for (const double near : {percent, std::nextafter(percent, 0.0), std::nextafter(percent, 101.0)})
        if (auto text = fmt::format("{}%", near); reads_back(text)) return text;
    return fmt::format("{}%", percent);
}

namespace {

constexpr std::size_t kMostNumbers = 4;  // in a version in the policy

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

// Parses all of TEXT as 1 to MOST numbers.
std::optional<Numbers> read_numbers(std::string_view text, std::size_t most) {
    take(text, " ");
    Numbers numbers = take_numbers(text);
    take(text, " ");
    if (!text.empty() || numbers.empty() || numbers.size() > most) return std::nullopt;
    return numbers;
}

// Compares as many numbers as BOUND has; missing ones in NUMBERS are 0.
auto compare(Numbers numbers, const Numbers& bound) {
    numbers.resize(bound.size());
    return numbers <=> bound;
}

}  // namespace

bool NumberRange::has(const Numbers& numbers) const {
    return std::ranges::all_of(bounds_, [&](const Bound& bound) {
        const auto order = compare(numbers, bound.numbers);
        return (order == 0 && bound.is_inside) || (bound.is_upper ? order < 0 : order > 0);
    });
}

// Parses one part: "12", "8-16", ">=16".
bool NumberRange::add(std::string_view part, std::size_t most) {
    take(part, " ");
    const std::string_view sign = take(part, "<>=");
    if (!sign.empty()) {
        auto numbers = read_numbers(part, most);
        if (!numbers || (sign != "<" && sign != "<=" && sign != ">" && sign != ">=")) return false;
        bounds_.push_back({std::move(*numbers), sign[0] == '<', sign.ends_with('=')});
        return true;
    }
    const std::size_t dash = part.find('-');
    auto first = read_numbers(part.substr(0, dash), most);
    auto last = dash == std::string_view::npos ? first : read_numbers(part.substr(dash + 1), most);
    if (!first || !last || compare(*first, *last) > 0) return false;
    bounds_.push_back({std::move(*first), false, true});
    bounds_.push_back({std::move(*last), true, true});
    return true;
}

bool NumberRange::parse(std::string_view text, std::size_t most, NumberRange& range) {
    for (;;) {
        const std::size_t comma = text.find(',');
        if (!range.add(text.substr(0, comma), most)) return false;
        if (comma == std::string_view::npos) return true;
        text.remove_prefix(comma + 1);
    }
}

Result<NumberRange> NumberRange::of_numbers(std::string_view text) {
    NumberRange range;
    if (parse(text, 1, range)) return range;
    return fail("must be a whole number or a range, such as \">=16\", \"8-16\" or \">=8,<64\"");
}

Result<NumberRange> NumberRange::of_versions(std::string_view text) {
    NumberRange range;
    if (parse(text, kMostNumbers, range)) return range;
    return fail("must be a version or a range of them, such as \">=6.6\", \"6.12\" or \"6.6-7.0\"");
}

Numbers leading_numbers(std::string_view release) {
    return take_numbers(release);
}

}  // namespace wq
