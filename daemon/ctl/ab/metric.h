// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wq::ab {

// The number that a command prints, found by a regular expression of pcre2pattern(3) with one group. `^` and
// `$` are the ends of lines; what is compared are bytes. Its first match counts.
class Metric {
  public:
    // Errors: EINVAL where PATTERN is none, or has no group, or more than one.
    static Result<Metric> parse(const std::string& pattern);
    // What the group says, a decimal number above 0. Errors: nothing matches, or that is none.
    [[nodiscard]] Result<double> read(std::string_view output) const;

  private:
    explicit Metric(std::shared_ptr<const void> code) : code_(std::move(code)) {}
    std::shared_ptr<const void> code_;  // a compiled pattern of pcre2's
};

}  // namespace wq::ab
