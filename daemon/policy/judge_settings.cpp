// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/judge_settings.h"

#include "base/text.h"

namespace wq {
namespace {

// Parses all of TEXT as a whole number in 1..MOST. The error is WHAT and these bounds.
template <class T>
Result<T> parse_count(std::string_view text, T most, const std::string& what) {
    const auto number = number_of<T>(text);
    if (number && *number >= 1 && *number <= most) return *number;
    return fail(what + "must be 1 to " + std::to_string(most));
}

}  // namespace

Result<double> parse_alpha(std::string_view text) {
    const auto value = number_of<double>(text);
    if (value && *value > 0 && *value <= kMaxAlpha) return *value;
    return fail("alpha must be above 0 and at most 0.5");
}

Result<double> parse_tolerance(std::string_view text) {
    if (const auto share = percentage_of(text)) return *share;
    return fail("tolerance must be 0% to 100%, with its percent sign");
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

}  // namespace wq
