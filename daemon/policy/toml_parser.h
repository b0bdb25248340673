// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/toml_table.h"

namespace wq {

// Why a text is rejected, in one sentence that is safe to print.
struct TomlFlaw {
    std::size_t offset = 0;  // at most the size of the text
    std::string message;
};

// Parses TEXT as TOML 1.0 with toml++, or returns the first error. Also rejects valid TOML in these cases:
// - values nested deeper than 16 levels, or more than 128 dots in a line: the library recurses per level of
//   brackets and per part of a key, and so do the destructors of its tables and ours;
// - a line longer than kMaxPolicyLine;
// - a NUL character in a string: a name would end there.
tl::expected<TomlValue, TomlFlaw> parse_toml(std::string_view text);

}  // namespace wq
