// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>
#include <vector>

namespace wq {

// One error in a policy, with its place. Line and column count from 1, columns in bytes; 0 = the whole file.
// Excerpt and message contain no terminal control characters.
struct PolicyError {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    std::string message;
    std::string excerpt;                           // the line with the error, or a part; may be empty
    unsigned caret = 0;                            // byte of the excerpt at `column`, from 1; 0 = none
    [[nodiscard]] std::string text() const;        // "FILE:LINE:COLUMN: MESSAGE"
    [[nodiscard]] std::string underlined() const;  // text(), then the line with a caret under the column
};
using PolicyErrors = std::vector<PolicyError>;

}  // namespace wq
