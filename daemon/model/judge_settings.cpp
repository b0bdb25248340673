// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/judge_settings.h"

#include <charconv>

namespace wq {
namespace {

// Parses all of TEXT as a number in LOW..HIGH.
template <class T>
bool read_number(std::string_view text, T low, T high, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high;
}

}  // namespace

Result<double> parse_alpha(std::string_view text) {
    double value = 0;
    if (!read_number(text, 0.0, kMaxAlpha, value) || value == 0)
        return fail("alpha must be above 0 and at most 0.5");
    return value;
}

Result<double> parse_tolerance(std::string_view text) {
    double value = 0;
    if (!text.ends_with('%') || !read_number(text.substr(0, text.size() - 1), 0.0, 100.0, value))
        return fail("tolerance must be 0% to 100%, with its percent sign");
    return value / 100;
}

Result<unsigned> parse_max_pairs(std::string_view text) {
    unsigned value = 0;
    if (!read_number(text, 1U, kMaxPairs, value)) return fail("must be 1 to 10000");
    return value;
}

Result<unsigned> parse_candidates(std::string_view text) {
    unsigned value = 0;
    if (!read_number(text, 1U, kMaxCandidates, value)) return fail("candidates must be 1 to 100");
    return value;
}

Result<std::uint64_t> parse_run_length(std::string_view text) {
    std::uint64_t value = 0;
    if (!read_number(text, std::uint64_t{1}, kMaxRunLength, value))
        return fail("run-length must be 1 to 1000000000");
    return value;
}

}  // namespace wq
