// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace wq {

// A number, or the numbers of a version: "6.12.57" is 6, 12, 57.
using Numbers = std::vector<unsigned>;

// What a number or a version may be: "12", "8-16", ">=16", ">8", "<=16", "<64", or several with commas, which
// must all hold: ">=8,<64". A bound counts for as many numbers as it has: "6.12" is every 6.12.x, "<=7.0" has
// 7.0.5, ">6.6" begins with 6.7.
class NumberRange {
  public:
    // Reads all of TEXT. The error says what it had to be: "must be ...".
    static Result<NumberRange> of_numbers(std::string_view text);
    static Result<NumberRange> of_versions(std::string_view text);

    [[nodiscard]] bool has(const Numbers& numbers) const;

  private:
    enum class Is { below, at_most, at_least, above };
    struct Bound {
        Is is;
        Numbers numbers;
    };
    static bool parse(std::string_view text, std::size_t most, NumberRange& range);
    bool add(std::string_view part, std::size_t most);

    std::vector<Bound> bounds_;
};

// The numbers that a kernel's release begins with: "6.12.57+deb13" is 6, 12, 57. Empty where it begins
// otherwise.
Numbers leading_numbers(std::string_view release);

}  // namespace wq
