// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq {

// Adds C to GLOB, a pattern for fnmatch(3), so that it matches only itself.
void add_literal(char c, std::string& glob);
// A pattern that matches only TEXT.
std::string glob_of(const std::string& text);
// A pattern for the names of the class KIND ("kcryptd-#:#-#"), as far as fnmatch(3) can: a number is a digit
// followed by anything.
std::string glob_of_kind(const std::string& kind);

}  // namespace wq
