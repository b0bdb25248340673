// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace wq {

// A mistake in the words of a TOML text, before its grammar is looked at.
struct TomlFlaw {
    std::size_t offset = 0;
    std::string message;
};

// Looks through TEXT for what toml11 must not be given, or places badly:
// - a byte that is not UTF-8, or a control character that TOML does not allow, NUL above all;
// - a string that is not closed, an escape that does not exist: 3.7 and 4.4 name different places;
// - a line longer than kMaxPolicyLine: 3.7 takes time with the square of it;
// - brackets nested deeper than 64, or keys of more than 64 parts: both versions recurse;
// - a binary number of more than 62 digits: both overflow, and 3.7 drops its upper part in silence;
// - an empty array: 3.7 reads beyond its end where a table of the same name follows. It says nothing here.
// The first flaw, or nothing.
std::optional<TomlFlaw> find_toml_flaw(std::string_view text);

}  // namespace wq
