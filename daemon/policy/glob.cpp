// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/glob.h"

namespace wq {

void add_literal(char c, std::string& glob) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') glob += '\\';
    glob += c;
}

std::string glob_of(const std::string& text) {
    std::string out;
    for (const char c : text) add_literal(c, out);
    return out;
}

std::string glob_of_kind(const std::string& kind) {
    std::string out;
    for (const char c : kind)
        if (c == '#')
            out += "[0-9]*";
        else
            add_literal(c, out);
    return out;
}

}  // namespace wq
