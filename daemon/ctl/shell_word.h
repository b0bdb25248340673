// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <string>

namespace wq::ctl {

// TEXT in single quotes, which a POSIX shell takes literally.
inline std::string shell_quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
    return out + "'";
}

// TEXT as one word of a command to copy: unquoted if no character is special to a shell, else quoted.
inline std::string shell_word(const std::string& text) {
    const bool plain = !text.empty() && text.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyz"
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-.:@%+=,/") == std::string::npos;
    return plain ? text : shell_quoted(text);
}

}  // namespace wq::ctl
