// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wq {

// TEXT with what a terminal might obey (control characters, bytes that are not UTF-8) replaced, byte by byte.
std::string printable(std::string_view text);

// WORDS of a user's as a message repeats them: in quotes, printable, and not too long.
std::string in_quotes(std::string_view words);

// How many bytes the UTF-8 character at OFFSET has; 0 where there is no valid one.
std::size_t utf8_length(std::string_view text, std::size_t offset);

// SECONDS as people say it: "90 s", "46 min", "5 h", "7 days"; rounded to the nearest.
std::string rough_time(std::uint64_t seconds);

inline bool is_utf8_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace wq
