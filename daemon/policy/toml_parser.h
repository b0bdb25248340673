// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/toml_value.h"

namespace wq {

// Why a text is not taken, in one sentence that is safe to print.
struct TomlFlaw {
    std::size_t offset = 0;  // at most the text's size
    std::string message;
};

// Reads TEXT as TOML 1.0 with toml++, or tells the first thing that is not. Refused, though TOML has them,
// are
// - values nested deeper than 16 levels, and more than 128 dots in a line: the library recurses per level of
//   brackets and per part of a key, and so do the destructors of its tables and ours;
// - a line longer than kMaxPolicyLine;
// - the character NUL in a string: where it ends, a name would.
tl::expected<TomlValue, TomlFlaw> parse_toml(std::string_view text);

}  // namespace wq
