// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>

#include "policy/source_text.h"

namespace wq {

// The error that REPORT tells, toml11's text for people about a syntax error in TEXT.
PolicyError read_syntax_error(const SourceText& text, std::string_view report);

}  // namespace wq
