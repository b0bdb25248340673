// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "policy/toml_parser.h"

namespace wq {

// Reads the string of TEXT that begins with a quote at AT, up to behind its closing quotes, and adds its
// characters to OUT. LONG_TOO: a string in three quotes is taken as well.
tl::expected<void, TomlFlaw> read_toml_string(std::string_view text, std::size_t& at, bool long_too,
                                              std::string& out);

}  // namespace wq
