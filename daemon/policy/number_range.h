// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace wq {

// A number, or the numbers in a version: "6.12.57" is 6, 12, 57.
using Numbers = std::vector<unsigned>;

// A range of numbers or versions: "12", "8-16", ">=16", ">8", "<=16", "<64", or several joined with commas,
// which must all be true: ">=8,<64". Only as many numbers as the bound has are compared: "6.12" contains
// every 6.12.x, "<=7.0" contains 7.0.5, ">6.6" starts at 6.7.
class NumberRange {
  public:
    // Parses all of TEXT. The error describes the valid values: "must be ...".
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

// The numbers at the start of a kernel release: "6.12.57+deb13" is 6, 12, 57. Empty if there are none.
Numbers leading_numbers(std::string_view release);

}  // namespace wq
