// SPDX-License-Identifier: LGPL-2.1-or-later
#include "policy/toml_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/source_text.h"
#include "policy/toml_definitions.h"
#include "policy/toml_scalar.h"
#include "policy/toml_string.h"

namespace wq {
namespace {

using Done = tl::expected<void, TomlFlaw>;

constexpr unsigned kMaxDepth = 64;
constexpr std::size_t kMaxParts = 64;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr const char* kWantsKey = "expected a key: letters, digits, _ and -, or a string in quotes";

tl::unexpected<TomlFlaw> flaw(std::size_t offset, std::string message) {
    return tl::unexpected(TomlFlaw{offset, std::move(message)});
}

bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// What holds for every byte, whether in a string, in a comment or outside.
Done check_bytes(std::string_view text) {
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
    return {};
}

// What a conflict is with.
std::string_view description(const TomlValue& by) {
    switch (by.made) {
        case TomlMade::closed:
            break;
        case TomlMade::implicit:
        case TomlMade::header:
            return "a table with a header";
        case TomlMade::dotted:
            return "a table made by a key with dots";
        case TomlMade::list:
            return "a list of tables";
    }
    if (std::holds_alternative<TomlArray>(by.value)) return "an array in brackets";
    if (std::holds_alternative<TomlMembers>(by.value)) return "an inline table";
    return "a single value";
}

// Reads a text of good bytes from its beginning to its end.
class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    tl::expected<TomlValue, TomlFlaw> parse() {
        TomlValue top{TomlMade::header, 0, 0, TomlMembers{}};
        TomlValue* table = &top;
        take(kByteOrderMark);
        while (at_ < text_.size())
            if (auto line = read_line(top, table); !line) return tl::unexpected(line.error());
        return top;
    }

  private:
    [[nodiscard]] bool sees(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
    [[nodiscard]] bool at_line_end() const { return at_ == text_.size() || sees("\n") || sees("\r\n"); }

    bool take(std::string_view word) {
        if (!sees(word)) return false;
        at_ += word.size();
        return true;
    }

    void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }

    // Blanks, comments and newlines.
    void skip_lines() {
        for (;;) {
            at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
            if (!sees("#")) return;
            at_ = std::min(text_.find('\n', at_), text_.size());
        }
    }

    // TABLE is the one that the last header began; it is changed here.
    Done read_line(TomlValue& top, TomlValue*& table) {
        skip_blanks();
        Done done;
        if (sees("["))
            done = read_header(top, table);
        else if (!at_line_end() && !sees("#"))
            done = read_pair(*table);
        if (!done) return done;
        skip_blanks();
        if (sees("#")) at_ = std::min(text_.find('\n', at_), text_.size());
        if (!at_line_end()) return flaw(at_, "expected the end of the line");
        at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
        return {};
    }

    Done read_header(TomlValue& top, TomlValue*& table) {
        const std::size_t start = at_;
        const bool element = take("[[");
        if (!element) take("[");
        TomlKey key;
        if (auto done = read_key(key); !done) return done;
        const std::string_view end = element ? "]]" : "]";
        if (!take(end)) return flaw(at_, fmt::format("expected {} after the table's name", end));
        const auto defined = element ? define_element(top, key, start) : define_table(top, key, start);
        if (!defined) return tl::unexpected(told(defined.error()));
        table = *defined;
        return {};
    }

    // KEY = VALUE, for a line and for an inline TABLE.
    Done read_pair(TomlValue& table) {
        TomlKey key;
        if (auto done = read_key(key); !done) return done;
        if (!take("=")) return flaw(at_, "expected = after the key");
        skip_blanks();
        const auto defined = define_value(table, key);
        if (!defined) return tl::unexpected(told(defined.error()));
        return read_value(**defined);
    }

    // The parts of a key, and the blanks around them.
    Done read_key(TomlKey& key) {
        for (;;) {
            skip_blanks();
            TomlName& part = key.emplace_back();
            if (auto done = read_name(part); !done) return done;
            skip_blanks();
            if (!sees(".")) return {};
            if (key.size() == kMaxParts)
                return flaw(at_, fmt::format("a key of more than {} parts", kMaxParts));
            ++at_;
        }
    }

    Done read_name(TomlName& out) {
        out.offset = at_;
        if (sees("\"") || sees("'")) return read_toml_string(text_, at_, false, out.name);
        while (at_ < text_.size() && is_bare(text_[at_])) out.name += text_[at_++];
        if (out.name.empty()) return flaw(at_, kWantsKey);
        return {};
    }

    Done read_value(TomlValue& out) {
        out.offset = at_;
        if (sees("[") || sees("{")) return read_nested(out);
        if (sees("\"") || sees("'"))
            return read_toml_string(text_, at_, true, out.value.emplace<std::string>());
        const std::string_view word = scalar();
        if (word.empty()) return flaw(at_, "expected a value");
        auto value = parse_toml_scalar(word);
        if (!value) return flaw(at_, value.error().text);
        out.value = std::move(*value);
        at_ += word.size();
        return {};
    }

    // What is to be a value, from here up to what may follow one.
    [[nodiscard]] std::string_view scalar() const {
        const auto up_to_end = [&](std::size_t from) {
            return text_.substr(at_, text_.find_first_of(" \t\r\n,]}#", from) - at_);
        };
        const std::string_view word = up_to_end(at_);
        const std::string_view next = text_.substr(std::min(at_ + word.size(), text_.size()), 2);
        const bool with_time = next.size() == 2 && next[0] == ' ' && next[1] >= '0' && next[1] <= '9';
        return with_time && looks_like_toml_date(word) ? up_to_end(at_ + word.size() + 1) : word;
    }

    Done read_nested(TomlValue& out) {
        if (++depth_ > kMaxDepth) return flaw(at_, fmt::format("nested deeper than {} levels", kMaxDepth));
        Done done = sees("[") ? read_array(out) : read_inline_table(out);
        --depth_;
        return done;
    }

    Done read_array(TomlValue& out) {
        auto& elements = out.value.emplace<TomlArray>();
        ++at_;
        for (skip_lines(); !take("]"); skip_lines()) {
            if (at_ == text_.size()) return flaw(out.offset, "the array is not closed");
            TomlValue& element = elements.emplace_back();
            element.key_offset = at_;
            if (auto done = read_value(element); !done) return done;
            skip_lines();
            if (!take(",") && !sees("]"))
                return at_ == text_.size() ? flaw(out.offset, "the array is not closed")
                                           : flaw(at_, "expected , or ] in the array");
        }
        return {};
    }

    // While it is read its keys may have dots in common, as if it had a header.
    Done read_inline_table(TomlValue& out) {
        out.value.emplace<TomlMembers>();
        ++at_;
        skip_blanks();
        for (bool more = !take("}"); more;) {
            if (auto done = read_pair(out); !done) return done;
            skip_blanks();
            more = take(",");
            if (!more && !take("}")) return not_closed();
            skip_blanks();
            if (more && sees("}")) return flaw(at_, "a value must follow the last comma of an inline table");
        }
        return {};
    }

    [[nodiscard]] Done not_closed() const {
        if (at_line_end() || sees("#")) return flaw(at_, "an inline table must be closed on its line");
        return flaw(at_, "expected , or } in the inline table");
    }

    [[nodiscard]] TomlFlaw told(const TomlConflict& conflict) const {
        const auto line = std::count(text_.begin(), text_.begin() + conflict.by->key_offset, '\n') + 1;
        const std::string name = in_quotes(conflict.name);
        const std::string_view what = description(*conflict.by);
        if (conflict.addition)
            return {conflict.offset,
                    fmt::format("{} of line {} cannot be added to: it is {}", name, line, what)};
        return {conflict.offset,
                fmt::format("{} is defined twice, first in line {} as {}", name, line, what)};
    }

    std::string_view text_;
    std::size_t at_ = 0;
    unsigned depth_ = 0;
};

}  // namespace

tl::expected<TomlValue, TomlFlaw> parse_toml(std::string_view text) {
    if (auto bytes = check_bytes(text); !bytes) return tl::unexpected(bytes.error());
    return Parser(text).parse();
}

}  // namespace wq
