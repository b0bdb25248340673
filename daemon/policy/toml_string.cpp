// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace wq {
namespace {

using Done = tl::expected<void, TomlFlaw>;

tl::unexpected<TomlFlaw> flaw(std::size_t offset, std::string message) {
    return tl::unexpected(TomlFlaw{offset, std::move(message)});
}

void add_utf8(std::string& out, unsigned long code) {
    const auto byte = [&](unsigned long bits) { out += static_cast<char>(bits); };
    if (code < 0x80) return byte(code);
    if (code < 0x800) {
        byte(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            byte(0xE0 | code >> 12);
        } else {
            byte(0xF0 | code >> 18);
            byte(0x80 | (code >> 12 & 0x3F));
        }
        byte(0x80 | (code >> 6 & 0x3F));
    }
    byte(0x80 | (code & 0x3F));
}

class StringReader {
  public:
    StringReader(std::string_view text, std::size_t& at, std::string& out)
        : text_(text), at_(at), start_(at), quote_(text[at]), out_(out) {}

    Done read(bool long_too) {
        const std::string three(3, quote_);
        if (!long_too || text_.substr(at_, 3) != three) return read_short();
        return read_long(three);
    }

  private:
    Done read_short() {
        ++at_;
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != quote_)
            if (auto one = character(); !one) return one;
        if (at_ == text_.size() || text_[at_] == '\n')
            return flaw(start_, "string is not closed on its line");
        ++at_;
        return {};
    }

    Done read_long(const std::string& three) {
        at_ += 3;
        if (text_.substr(at_, 2) == "\r\n") ++at_;
        if (text_.substr(at_, 1) == "\n") ++at_;
        while (text_.substr(at_, 3) != three) {
            if (at_ == text_.size()) return flaw(start_, "string is not closed");
            if (quote_ == '"' && swallow_line_end()) continue;
            if (auto one = character(); !one) return one;
        }
        // Up to two quotes may stand right before the three that close.
        for (int more = 0; more < 2 && text_.substr(at_ + 1, 3) == three; ++more) out_ += text_[at_++];
        at_ += 3;
        return {};
    }

    Done character() {
        if (text_[at_] == '\\' && quote_ == '"') return escape();
        out_ += text_[at_++];
        return {};
    }

    // A backslash at the end of a line swallows all blanks and newlines up to the next word.
    bool swallow_line_end() {
        if (text_[at_] != '\\') return false;
        const auto line_end = text_.find_first_not_of(" \t\r", at_ + 1);
        if (line_end == std::string_view::npos || text_[line_end] != '\n') return false;
        at_ = std::min(text_.find_first_not_of(" \t\r\n", line_end), text_.size());
        return true;
    }

    Done escape() {
        constexpr std::string_view kLetters = "btnfr\"\\";
        constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
        const std::size_t start = at_++;
        const char letter = at_ < text_.size() ? text_[at_++] : '\n';
        if (letter == 'u' || letter == 'U') return unicode(start, letter == 'u' ? 4 : 8);
        const auto which = kLetters.find(letter);
        if (which == std::string_view::npos)
            return flaw(start, R"(no such escape; a backslash itself is written \\, or the string in ''')");
        out_ += kMeanings[which];
        return {};
    }

    Done unicode(std::size_t start, std::size_t digits) {
        const std::string_view hex = text_.substr(at_, digits);
        unsigned long code = 0;
        const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (hex.size() < digits || end != hex.data() + digits || error != std::errc())
            return flaw(start, fmt::format("{} hexadecimal digits must follow", digits));
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return flaw(start, "no such character");
        if (code == 0) return flaw(start, "NUL character");
        add_utf8(out_, code);
        at_ += digits;
        return {};
    }

    std::string_view text_;
    std::size_t& at_;
    std::size_t start_;
    char quote_;
    std::string& out_;
};

}  // namespace

Done read_toml_string(std::string_view text, std::size_t& at, bool long_too, std::string& out) {
    return StringReader(text, at, out).read(long_too);
}

}  // namespace wq
