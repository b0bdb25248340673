// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/number_range.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace wq {
namespace {

constexpr std::size_t kMostNumbers = 4;  // in a version in the policy

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

// Parses a number at the start of TEXT and removes it from TEXT.
std::optional<unsigned> take_number(std::string_view& text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

// Parses numbers separated by dots at the start of TEXT and removes them from TEXT.
Numbers take_numbers(std::string_view& text) {
    Numbers numbers;
    for (;;) {
        const auto number = take_number(text);
        if (!number) return numbers;
        numbers.push_back(*number);
        if (text.size() < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') return numbers;
        text.remove_prefix(1);
    }
}

// Parses all of TEXT as 1 to MOST numbers.
std::optional<Numbers> read_numbers(std::string_view text, std::size_t most) {
    text = trimmed(text);
    Numbers numbers = take_numbers(text);
    if (!text.empty() || numbers.empty() || numbers.size() > most) return std::nullopt;
    return numbers;
}

// Compares NUMBERS with BOUND: -1, 0 or 1. Uses as many numbers as BOUND has; missing ones in NUMBERS are 0.
int compare(const Numbers& numbers, const Numbers& bound) {
    for (std::size_t i = 0; i < bound.size(); i++) {
        const unsigned number = i < numbers.size() ? numbers[i] : 0;
        if (number != bound[i]) return number < bound[i] ? -1 : 1;
    }
    return 0;
}

}  // namespace

bool NumberRange::has(const Numbers& numbers) const {
    for (const Bound& bound : bounds_) {
        const int order = compare(numbers, bound.numbers);
        const bool inside = bound.is == Is::below      ? order < 0
                            : bound.is == Is::at_most  ? order <= 0
                            : bound.is == Is::at_least ? order >= 0
                                                       : order > 0;
        if (!inside) return false;
    }
    return true;
}

// Parses one part: "12", "8-16", ">=16".
bool NumberRange::add(std::string_view part, std::size_t most) {
    constexpr std::array<std::pair<std::string_view, Is>, 4> kSigns = {
        {{"<=", Is::at_most}, {">=", Is::at_least}, {"<", Is::below}, {">", Is::above}}};
    for (const auto& [sign, is] : kSigns)
        if (part.starts_with(sign)) {
            auto numbers = read_numbers(part.substr(sign.size()), most);
            if (numbers) bounds_.push_back({is, std::move(*numbers)});
            return numbers.has_value();
        }
    const std::size_t dash = part.find('-');
    auto first = read_numbers(part.substr(0, dash), most);
    auto last = dash == std::string_view::npos ? first : read_numbers(part.substr(dash + 1), most);
    if (!first || !last || compare(*first, *last) > 0) return false;
    bounds_.push_back({Is::at_least, std::move(*first)});
    bounds_.push_back({Is::at_most, std::move(*last)});
    return true;
}

bool NumberRange::parse(std::string_view text, std::size_t most, NumberRange& range) {
    for (;;) {
        const std::size_t comma = text.find(',');
        if (!range.add(trimmed(text.substr(0, comma)), most)) return false;
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
