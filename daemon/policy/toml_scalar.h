// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string_view>

#include "model/result.h"
#include "policy/toml_value.h"

namespace wq {

// The value of WORD, which is a value without quotes or brackets: true, false, a number, a date or a time.
// Error: why it is none.
Result<decltype(TomlValue::value)> parse_toml_scalar(std::string_view word);

// Whether WORD has the form of a date without a time, which a blank and a time may follow.
bool looks_like_toml_date(std::string_view word);

}  // namespace wq
