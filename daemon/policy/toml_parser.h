// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/result.h"
#include "policy/toml_value.h"

namespace wq {

// Why a text is not taken, in one sentence.
struct TomlFlaw {
    std::size_t offset = 0;  // at most the text's size
    std::string message;
};

// Reads TEXT as TOML 1.0, or tells the first thing that is not. Below what TOML allows are, on purpose:
// - brackets nested deeper than 64, and keys of more than 64 parts: this and the destructors recurse;
// - a line longer than kMaxPolicyLine;
// - the character NUL in a string: where it ends, a name would.
// The daemon is root and its policy is short: what is simple and the same everywhere was worth more than a
// library, whose two versions in Debian 12 and 13 differ in what they take, and need a guard before them.
tl::expected<TomlValue, TomlFlaw> parse_toml(std::string_view text);

}  // namespace wq
