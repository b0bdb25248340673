// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

const Unit* unit_named(std::string_view name) {
    for (const Unit& unit : kUnits)
        if (unit.name == name) return &unit;
    return nullptr;
}

// Parses a number and its unit at the start of TEXT and removes them from TEXT.
Result<milliseconds> take_part(std::string_view& text) {
    const std::string_view digits = take(text, "0123456789");
    take(text, " ");
    const Unit* unit = unit_named(take(text, "abcdefghijklmnopqrstuvwxyz"));
    if (digits.empty() || unit == nullptr) return not_a_duration();
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
    if (const auto share = percentage_of(text)) return *share;
    return fail("must be 0% to 100%, with its percent sign");
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
    const auto digits = [&](std::size_t at, std::size_t count) {
        unsigned out = 0;
        for (const char c : text.substr(at, count)) out = out * 10 + static_cast<unsigned>(c - '0');
        return out;
    };
    const bool form = text.size() == 10 && text[4] == '-' && text[7] == '-' &&
                      text.find_first_not_of("0123456789-") == std::string_view::npos;
    if (form && std::ranges::count(text, '-') == 2 && digits(0, 4) >= 2000 &&
        year_month_day(year(static_cast<int>(digits(0, 4))), month(digits(5, 2)), day(digits(8, 2))).ok())
        return std::string(text);
    return fail("must be a day, such as \"2027-01-31\"");
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

}  // namespace wq
