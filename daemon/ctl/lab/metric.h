// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wq::ab {

// A number in a command's output, found with a regular expression (pcre2pattern(3)) that has one group. `^`
// and `$` match at line ends; matching is by bytes. The first match counts.
class Metric {
  public:
    // Error: EINVAL if PATTERN is not valid or does not have exactly one group.
    static Result<Metric> parse(const std::string& pattern);
    // The text of the group as a decimal number above 0. Errors: no match, or not such a number.
    [[nodiscard]] Result<double> read(std::string_view output) const;

  private:
    explicit Metric(std::shared_ptr<const void> code) : code_(std::move(code)) {}
    std::shared_ptr<const void> code_;  // a compiled pcre2 pattern
};

}  // namespace wq::ab
