// SPDX-License-Identifier: LGPL-2.1-or-later
#include "evidence/json_scan.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace wq {
namespace {

constexpr unsigned kDeepest = 16;
constexpr double kMostCount = 9007199254740992.0;  // 2^53: each whole number up to here is a double

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_control(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

void append_utf8(std::uint32_t c, std::string& out) {
    const auto more = [&](unsigned shift) { out += static_cast<char>(0x80U | (c >> shift & 0x3fU)); };
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xc0U | c >> 6U);
        more(0);
    } else if (c < 0x10000) {
        out += static_cast<char>(0xe0U | c >> 12U);
        more(6);
        more(0);
    } else {
        out += static_cast<char>(0xf0U | c >> 18U);
        more(12);
        more(6);
        more(0);
    }
}

}  // namespace

void JsonScan::pass_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) at_++;
}

bool JsonScan::take(char c) {
    pass_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
}

bool JsonScan::take_word(std::string_view word) {
    pass_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
}

bool JsonScan::at_end() {
    pass_blanks();
    return at_ == text_.size();
}

// OUT: the text between the quotes, as written.
bool JsonScan::raw_string(std::string_view& out, bool& escaped) {
    if (!take('"')) return false;
    const std::size_t begin = at_;
    escaped = false;
    for (; at_ < text_.size(); at_++) {
        if (text_[at_] == '"') {
            out = text_.substr(begin, at_++ - begin);
            return true;
        }
        if (text_[at_] == '\\') {
            escaped = true;
            at_++;
        }
    }
    return false;
}

bool JsonScan::hex4(std::string_view digits, std::uint32_t& out) const {
    if (digits.size() < 4) return false;
    const auto read = std::from_chars(digits.data(), digits.data() + 4, out, 16);
    return read.ec == std::errc{} && read.ptr == digits.data() + 4;
}

bool JsonScan::unescape(std::string_view raw, std::string& out) const {
    for (std::size_t i = 0; i < raw.size(); i++) {
        if (raw[i] != '\\') {
            out += raw[i];
            continue;
        }
        const char c = raw[++i];  // raw_string() checked that there is one
        if (c == '"' || c == '\\' || c == '/') {
            out += c;
            continue;
        }
        std::uint32_t code = 0;
        if (c != 'u' || !hex4(raw.substr(i + 1), code)) return false;
        i += 4;
        if (code >= 0xd800 && code < 0xe000) {
            std::uint32_t low = 0;
            const bool paired = code < 0xdc00 && raw.substr(i + 1).starts_with("\\u") &&
                                hex4(raw.substr(i + 3), low) && low >= 0xdc00 && low < 0xe000;
            if (!paired) return false;
            i += 6;
            code = 0x10000 + ((code & 0x3ffU) << 10U) + (low & 0x3ffU);
        }
        append_utf8(code, out);
    }
    return true;
}

bool JsonScan::string(std::string& out) {
    std::string_view raw;
    bool escaped = false;
    if (!raw_string(raw, escaped)) return false;
    out.clear();
    if (!escaped)
        out = raw;
    else if (!unescape(raw, out))
        return false;
    for (std::size_t i = 0; i < out.size();) {
        const auto c = static_cast<unsigned char>(out[i]);
        if (c >= 0x20 && c < 0x7f) {
            i++;
            continue;
        }
        const std::size_t length = utf8_length(out, i);
        if (length == 0 || is_control(c)) return false;
        if (c == 0xc2 && is_control(static_cast<unsigned char>(out[i + 1]))) return false;  // C1
        i += length;
    }
    return true;
}

// from_chars() would also read "inf", "nan" and ".5".
bool JsonScan::number(double& out) {
    pass_blanks();
    const std::size_t digit = at_ + (at_ < text_.size() && text_[at_] == '-' ? 1 : 0);
    if (digit >= text_.size() || !is_digit(text_[digit])) return false;
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (read.ec != std::errc{} || !std::isfinite(out)) return false;
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return true;
}

bool JsonScan::count(std::uint64_t& out) {
    double value = 0;
    if (!number(value) || value < 0 || value > kMostCount || value != std::floor(value)) return false;
    out = static_cast<std::uint64_t>(value);
    return true;
}

bool JsonScan::boolean(bool& out) {
    out = take_word("true");
    return out || take_word("false");
}

bool JsonScan::null() {
    return take_word("null");
}

bool JsonScan::skip() {
    if (depth_ == kDeepest) return false;
    pass_blanks();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    depth_++;
    bool done = false;
    if (c == '{') {
        done = object([&](auto) { return skip(); });
    } else if (c == '[') {
        done = array([&](auto) { return skip(); });
    } else if (c == '"') {
        std::string_view raw;
        bool escaped = false;
        done = raw_string(raw, escaped);
    } else {
        double value = 0;
        bool flag = false;
        done = null() || boolean(flag) || number(value);
    }
    depth_--;
    return done;
}

}  // namespace wq
