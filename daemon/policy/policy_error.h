// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace wq {

// One mistake in a policy, with all that is needed to find it. Line and column count from 1, columns in
// bytes; 0 = the whole file. Excerpt and message hold nothing that a terminal would obey.
struct PolicyError {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    std::string message;
    std::string excerpt;                           // the offending line, if any; a piece of a long one
    unsigned caret = 0;                            // byte of the excerpt that `column` is, from 1; 0 = none
    [[nodiscard]] std::string text() const;        // "FILE:LINE:COLUMN: MESSAGE"
    [[nodiscard]] std::string underlined() const;  // the same, then the line with a caret under the column
};
using PolicyErrors = std::vector<PolicyError>;

}  // namespace wq
