// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/source_text.h"

namespace wq {
namespace {

using Flaw = std::optional<TomlFlaw>;

constexpr unsigned kMaxDepth = 64;
constexpr std::size_t kMaxBinary = 64;  // 0b and 62 digits

Flaw flaw(std::size_t offset, std::string message) {
    return TomlFlaw{offset, std::move(message)};
}

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

// A letter of a bare key, or of a number.
bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// What holds for every byte, whether in a string, in a comment or outside.
Flaw find_bad_byte(std::string_view text) {
    std::size_t line = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const bool newline = byte == '\n' || text.substr(at, 2) == "\r\n";
        if (byte == 0) return flaw(at, "NUL byte");
        if ((byte < 0x20 && byte != '\t' && !newline) || byte == 0x7F)
            return flaw(at, fmt::format("control character 0x{:02x}", byte));
        const std::size_t length = utf8_length(text, at);
        if (length == 0) return flaw(at, fmt::format("not UTF-8: byte 0x{:02x}", byte));
        at += length;
        if (byte == '\n') line = at;
        if (at - line > kMaxPolicyLine)
            return flaw(at - length, fmt::format("line longer than {} bytes", kMaxPolicyLine));
    }
    return std::nullopt;
}

// Walks through a text of good bytes, from one word to the next.
class Walker {
  public:
    explicit Walker(std::string_view text) : text_(text) {}

    Flaw walk() {
        while (at_ < text_.size())
            if (auto found = step()) return found;
        return std::nullopt;
    }

  private:
    [[nodiscard]] bool sees(std::string_view word) const { return text_.substr(at_, word.size()) == word; }

    Flaw step() {
        switch (text_[at_]) {
            case '#':
                at_ = std::min(text_.find('\n', at_), text_.size());
                return std::nullopt;
            case '"':
            case '\'':
                return sees("\"\"\"") || sees("'''") ? long_string() : short_string();
            case '[':
            case '{':
                return open();
            case '.':
                return dot();
            case '0':
                return zero();
            default:
                return other();
        }
    }

    Flaw open() {
        const std::size_t start = at_++;
        dots_ = 0;
        if (++depth_ > kMaxDepth) return flaw(start, fmt::format("nested deeper than {} levels", kMaxDepth));
        if (text_[start] == '[' && after_equals_ && closes_at_once())
            return flaw(start, "an empty array says nothing here; leave it out");
        return std::nullopt;
    }

    // Whether nothing but blanks, newlines and comments is between here and a closing bracket.
    [[nodiscard]] bool closes_at_once() const {
        for (std::size_t at = at_; at < text_.size(); ++at) {
            if (text_[at] == '#') at = std::min(text_.find('\n', at), text_.size() - 1);
            if (!is_blank(text_[at]) && text_[at] != '\n' && text_[at] != '\r') return text_[at] == ']';
        }
        return false;
    }

    Flaw dot() {
        if (++dots_ >= kMaxDepth) return flaw(at_, fmt::format("a key of more than {} parts", kMaxDepth));
        ++at_;
        return std::nullopt;
    }

    Flaw zero() {
        const std::size_t start = at_;
        const bool binary = sees("0b") && (at_ == 0 || !is_bare(text_[at_ - 1]));
        while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
        if (binary && at_ - start > kMaxBinary)
            return flaw(start, fmt::format("a binary number of more than {} characters", kMaxBinary));
        return std::nullopt;
    }

    Flaw other() {
        const char c = text_[at_++];
        if (c == ']' || c == '}') depth_ -= depth_ > 0 ? 1 : 0;
        if (c == '=' || c == ',' || c == '\n') dots_ = 0;
        if (c == '=') after_equals_ = true;
        if (c == '\n' && depth_ == 0) after_equals_ = false;
        return std::nullopt;
    }

    Flaw short_string() {
        const std::size_t start = at_;
        const char quote = text_[at_++];
        while (at_ < text_.size() && text_[at_] != '\n') {
            const char c = text_[at_];
            if (c == '\\' && quote == '"') {
                if (auto found = escape(false)) return found;
                continue;
            }
            ++at_;
            if (c == quote) return std::nullopt;
        }
        return flaw(start, "string is not closed on its line");
    }

    Flaw long_string() {
        const std::size_t start = at_;
        const std::string quotes(text_.substr(at_, 3));
        for (at_ += 3; at_ < text_.size();) {
            if (text_[at_] == '\\' && quotes[0] == '"') {
                if (auto found = escape(true)) return found;
            } else if (sees(quotes)) {
                close_long_string(quotes[0]);
                return std::nullopt;
            } else {
                ++at_;
            }
        }
        return flaw(start, "string is not closed");
    }

    // Up to two quotes may stand right before the three that close.
    void close_long_string(char quote) {
        for (int i = 0; i < 5 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
    }

    Flaw escape(bool in_long_string) {
        const std::size_t start = at_++;
        const char c = at_ < text_.size() ? text_[at_] : '\n';
        if (c == 'u' || c == 'U') return unicode(start, c == 'u' ? 4 : 8);
        if (in_long_string && skip_line_end()) return std::nullopt;
        if (std::string_view("btnfr\"\\").find(c) == std::string_view::npos)
            return flaw(start, R"(no such escape; a backslash itself is written \\, or the string in ''')");
        ++at_;
        return std::nullopt;
    }

    // A backslash at the end of a line swallows all blanks and newlines up to the next word.
    bool skip_line_end() {
        std::size_t at = at_;
        while (at < text_.size() && (is_blank(text_[at]) || text_[at] == '\r')) ++at;
        if (at == text_.size() || text_[at] != '\n') return false;
        at_ = at;
        return true;
    }

    Flaw unicode(std::size_t start, std::size_t digits) {
        const std::string hex(text_.substr(++at_, digits));
        if (hex.size() < digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
            return flaw(start, fmt::format("{} hexadecimal digits must follow", digits));
        const unsigned long code = std::stoul(hex, nullptr, 16);
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return flaw(start, "no such character");
        if (code == 0) return flaw(start, "NUL character");
        at_ += digits;
        return std::nullopt;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    unsigned depth_ = 0;
    unsigned dots_ = 0;
    bool after_equals_ = false;  // in a value, not in a table's header
};

}  // namespace

std::optional<TomlFlaw> find_toml_flaw(std::string_view text) {
    if (auto found = find_bad_byte(text)) return found;
    return Walker(text).walk();
}

}  // namespace wq
