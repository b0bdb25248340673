// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/policy_error.h"

#include <fmt/format.h>

#include <string_view>

#include "base/text.h"

namespace wq {

std::string PolicyError::text() const {
    if (line == 0) return fmt::format("{}: {}", file, message);
    return fmt::format("{}:{}:{}: {}", file, line, column, message);
}

namespace {

// White space as wide as the excerpt before the caret: a tab stays a tab, a multi-byte character is one
// column.
std::string indent(std::string_view before) {
    std::string out;
    for (char byte : before)
        if (!is_utf8_continuation(byte)) out += byte == '\t' ? '\t' : ' ';
    return out;
}

}  // namespace

std::string PolicyError::underlined() const {
    if (line == 0 || excerpt.empty()) return text();
    std::string out = fmt::format("{}\n{:>5} | {}", text(), line, excerpt);
    if (caret > 0) out += fmt::format("\n{:>5} | {}^", "", indent(excerpt.substr(0, caret - 1)));
    return out;
}

}  // namespace wq
